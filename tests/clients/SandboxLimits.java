import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints what an admin client and consumers of new groups get. Arguments: servers, topic. */
public class SandboxLimits {
    interface Attempt {
        Object run() throws Exception;
    }

    static void attempt(String name, Attempt attempt) {
        String outcome;
        try {
            outcome = "ok " + attempt.run();
        } catch (ExecutionException error) {
            outcome = error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage();
        } catch (Exception error) {
            outcome = error.getClass().getSimpleName() + ": " + error.getMessage();
        }
        System.out.println(name + " " + outcome.replace('\n', ' '));
    }

    public static void main(String[] given) {
        Map<String, Object> at = Map.of("bootstrap.servers", given[0]);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, given[1]);
        var partition = new TopicPartition(given[1], 0);
        try (Admin admin = Admin.create(at)) {
            attempt("create", () -> admin.createTopics(List.of(new NewTopic("new", 1, (short) 1))).all().get());
            attempt("delete", () -> admin.deleteTopics(List.of(given[1])).all().get());
            attempt("describe-settings", () -> admin.describeConfigs(List.of(resource)).all().get());
            attempt("delete-records", () ->
                admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(0))).all().get());
            attempt("all-offsets", () -> admin.listConsumerGroupOffsets("none").partitionsToOffsetAndMetadata().get());
            attempt("list-topics", () -> admin.listTopics().names().get());
        }
        Map<String, Object> group = Map.of("bootstrap.servers", given[0], "group.id", "g", "group.protocol", "consumer");
        attempt("consumer-group", () -> {
            var deserializer = new StringDeserializer();
            try (var consumer = new KafkaConsumer<>(group, deserializer, deserializer)) {
                consumer.subscribe(List.of(given[1]));
                return consumer.poll(Duration.ofSeconds(60)).count();
            }
        });
        attempt("share-group", () -> {
            var deserializer = new StringDeserializer();
            Map<String, Object> share = Map.of("bootstrap.servers", given[0], "group.id", "s");
            try (var consumer = new KafkaShareConsumer<>(share, deserializer, deserializer)) {
                consumer.subscribe(List.of(given[1]));
                return consumer.poll(Duration.ofSeconds(60)).count();
            }
        });
    }
}
