import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Rejects or releases the records of a topic by the first byte of their values, so that the broker writes dead letters.
 * Prints a line for each record that it has rejected or has released for the last time. Arguments: bootstrap, topic,
 * share group, number of letters after which it ends, deliveries after which a released record becomes a letter, topic of dead
 * letters, whether the broker copies records to it.
 */
public class ShareGroupLetters {
    static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    public static void main(String[] arguments) throws Exception {
        int left = Integer.parseInt(arguments[3]);
        int deliveries = Integer.parseInt(arguments[4]);
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", arguments[0],
                "group.id", arguments[2],
                "share.acknowledgement.mode", "explicit",
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class);
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, arguments[2]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.incrementalAlterConfigs(Map.of(group, List.of(
                            set("share.auto.offset.reset", "earliest"),
                            set("errors.deadletterqueue.topic.name", arguments[5]),
                            set("errors.deadletterqueue.copy.record.enable", arguments[6]))))
                    .all()
                    .get();
        }
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(arguments[1]));
            while (left > 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    int kind = record.value() == null ? 'r' : record.value()[0];
                    int delivery = record.deliveryCount().get();
                    boolean isLast = kind == 'r' || (kind == 'x' && delivery == deliveries);
                    consumer.acknowledge(record, switch (kind) {
                        case 'r' -> AcknowledgeType.REJECT;
                        case 'x' -> AcknowledgeType.RELEASE;
                        default -> AcknowledgeType.ACCEPT;
                    });
                    if (isLast) {
                        System.out.println("letter " + record.partition() + " " + record.offset() + " " + delivery);
                        left--;
                    }
                }
                consumer.commitSync();
            }
        }
    }
}
