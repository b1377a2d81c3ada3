import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints Kafka's error codes, a line each: the code, its name, and whether clients try again. */
public class ErrorCodes {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            boolean again = error.exception() instanceof RetriableException;
            System.out.println(error.code() + " " + error.name() + " " + (again ? "yes" : "no"));
        }
    }
}
