import java.util.List;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** A broker whose authorizer is Kafka's own, and prints each decision: principal, operation, resource, result. */
public class PrintingAuthorizer extends StandardAuthorizer {
    public static void main(String[] arguments) throws Exception {
        kafka.Kafka.main(arguments);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        for (int i = 0; i < actions.size(); i++) {
            Action action = actions.get(i);
            System.out.println(String.join("\t", "authorized", context.principal().toString(),
                action.operation().toString(), action.resourcePattern().name(), results.get(i).toString()));
        }
        System.out.flush();
        return results;
    }
}
