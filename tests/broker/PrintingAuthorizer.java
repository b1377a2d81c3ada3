import java.util.List;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
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

    /** A principal builder as that of a service whose user names are keys of accounts: User:KEY is User:account-KEY. */
    public static class Accounts extends DefaultKafkaPrincipalBuilder {
        public Accounts() {
            super(null, null);
        }

        @Override
        public KafkaPrincipal build(AuthenticationContext context) {
            KafkaPrincipal principal = super.build(context);
            return new KafkaPrincipal(principal.getPrincipalType(), "account-" + principal.getName());
        }
    }
}
