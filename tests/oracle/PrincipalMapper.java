import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Reads lines of rules and a subject (Base64), and prints Kafka's name (Base64), "none", or "error". */
public class PrincipalMapper {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            System.out.println(named(text(fields[0]), text(fields[1])));
        }
    }

    private static String named(String rules, String subject) {
        try {
            String name = SslPrincipalMapper.fromRules(rules).getName(subject);
            return "=" + Base64.getEncoder().encodeToString(name.getBytes(StandardCharsets.UTF_8));
        } catch (SslPrincipalMapper.NoMatchingRule none) {
            return "none";
        } catch (Exception error) {
            return "error";
        }
    }

    private static String text(String encoded) {
        return new String(Base64.getDecoder().decode(encoded), StandardCharsets.UTF_8);
    }
}
