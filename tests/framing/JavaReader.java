import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads partition 0 of topics, one after the other: BOOTSTRAP LAST SECONDS TOPIC... Prints "topic NAME", then "OFFSET VALUE" for each
 * record up to the value LAST, or "error TEXT".
 */
public class JavaReader {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        for (int i = 3; i < args.length; i++) {
            System.out.println("topic " + args[i]);
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                read(consumer, new TopicPartition(args[i], 0), args[1], Long.parseLong(args[2]));
            } catch (Exception error) {
                System.out.println("error " + error + " " + error.getCause());
            }
        }
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer, TopicPartition where, String last, long seconds) {
        consumer.assign(List.of(where));
        consumer.seek(where, 0);
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                String value = record.value() == null ? "" : new String(record.value(), StandardCharsets.ISO_8859_1);
                System.out.println(record.offset() + " " + value);
                if (value.equals(last)) {
                    return;
                }
                end = System.nanoTime() + seconds * 1_000_000_000L;
            }
        }
        System.out.println("error nothing comes");
    }
}
