import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/**
 * A broker with policies for topics. They write what they see to the file in the property policies.seen, one request a
 * line. They refuse to create topics named "uncreatable", and to alter topics named "unalterable".
 */
public class KafkaWithPolicies {
    public static void main(String[] args) {
        kafka.Kafka.main(args);
    }

    private static void validate(
            String kind, String refused, String topic, Map<String, String> settings) {
        String line = kind + " " + topic + " " + new TreeMap<>(settings == null ? Map.of() : settings) + "\n";
        Path file = Path.of(System.getProperty("policies.seen"));
        try {
            Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        if (topic.startsWith(refused)) {
            throw new PolicyViolationException("the broker's policy forbids it");
        }
    }

    public static class Creation implements CreateTopicPolicy {
        @Override
        public void validate(RequestMetadata request) {
            KafkaWithPolicies.validate("create", "uncreatable", request.topic(), request.configs());
        }

        @Override
        public void configure(Map<String, ?> settings) {}

        @Override
        public void close() {}
    }

    public static class Alteration implements AlterConfigPolicy {
        @Override
        public void validate(RequestMetadata request) {
            KafkaWithPolicies.validate("alter", "unalterable", request.resource().name(), request.configs());
        }

        @Override
        public void configure(Map<String, ?> settings) {}

        @Override
        public void close() {}
    }
}
