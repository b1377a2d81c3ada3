import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends lines "timestamp value" to partition 0 in one batch; prints "ok" or the exception for each. */
public class JavaProducer {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        String mode = args[3];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("compression.type", args[2]);
        settings.put("linger.ms", args[4]);
        settings.put("enable.idempotence", String.valueOf(!mode.equals("plain")));
        if (mode.equals("transactional")) {
            settings.put("transactional.id", topic + "-" + args[2]);
        }
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        List<String> outcomes = new ArrayList<>();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (mode.equals("transactional")) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                int space = line.indexOf(' ');
                long time = Long.parseLong(line.substring(0, space));
                futures.add(producer.send(new ProducerRecord<>(topic, 0, time, "key", line.substring(space + 1))));
            }
            producer.flush();
            boolean rejected = false;
            for (Future<RecordMetadata> future : futures) {
                try {
                    future.get();
                    outcomes.add("ok");
                } catch (ExecutionException e) {
                    rejected = true;
                    outcomes.add(e.getCause().getClass().getSimpleName() + ": " + e.getCause().getMessage());
                }
            }
            if (mode.equals("transactional")) {
                if (rejected) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        outcomes.forEach(System.out::println);
    }
}
