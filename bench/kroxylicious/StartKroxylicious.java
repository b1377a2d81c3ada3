import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;
import java.nio.file.Files;
import java.nio.file.Path;

/** Runs Kroxylicious on one configuration file and says so on standard output once it listens. */
public class StartKroxylicious {
    public static void main(String[] args) throws Exception {
        ConfigParser parser = new ConfigParser();
        var config = parser.parseConfiguration(Files.readString(Path.of(args[0])));
        try (KafkaProxy proxy = new KafkaProxy(parser, config, Features.defaultFeatures())) {
            proxy.startup();
            System.out.println("listening");
            proxy.block();
        }
    }
}
