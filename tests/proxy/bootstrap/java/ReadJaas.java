import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** Prints the options that Kafka reads from each file of properties, in Base64: one line for each argument. */
public class ReadJaas {
    public static void main(String[] files) {
        for (String file : files) {
            System.out.println(read(new String(Base64.getDecoder().decode(file), StandardCharsets.ISO_8859_1)));
        }
    }

    private static String read(String file) {
        try {
            Properties properties = new Properties();
            properties.load(new ByteArrayInputStream(file.getBytes(StandardCharsets.ISO_8859_1)));
            String value = properties.getProperty("sasl.jaas.config").trim(); // as ConfigDef.parseType
            JaasContext context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(value)));
            AppConfigurationEntry entry = context.configurationEntries().get(0);
            StringBuilder shown = new StringBuilder("ok");
            for (String name : new String[] {"username", "password"}) {
                Object found = entry.getOptions().get(name);
                shown.append(' ').append(found == null ? "-" : encoded(found.toString()));
            }
            return shown.toString();
        } catch (IllegalArgumentException rejected) {
            return "rejected";
        } catch (Exception failed) {
            return "failed " + failed;
        }
    }

    private static String encoded(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
