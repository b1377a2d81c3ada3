import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends numbered records, each a batch of its own, five requests in flight; the time of one in the middle is bad.
 * Idempotent: one stream. Transactional: one with the bad record (aborted), one that commits, one that aborts, one that
 * commits. Prints "value outcome" for each record and "transaction outcome" for each transaction.
 */
public class StatefulProducer {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        boolean transactional = args[2].equals("transactional");
        int records = Integer.parseInt(args[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("linger.ms", "0");
        settings.put("batch.size", "0");
        settings.put("max.in.flight.requests.per.connection", "5");
        settings.put("enable.idempotence", "true");
        if (transactional) {
            settings.put("transactional.id", topic);
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (!transactional) {
                send(producer, topic, "a", records, true);
                return;
            }
            producer.initTransactions();
            transaction(producer, topic, "a", records, true, false);
            transaction(producer, topic, "b", records, false, true);
            transaction(producer, topic, "c", records, false, false);
            transaction(producer, topic, "d", records, false, true);
        }
    }

    private static void transaction(
            KafkaProducer<String, String> producer, String topic, String name, int records, boolean bad, boolean commit) {
        String outcome;
        try {
            producer.beginTransaction();
            boolean sound = send(producer, topic, name, records, bad);
            if (sound && commit) {
                producer.commitTransaction();
                outcome = "committed";
            } else {
                producer.abortTransaction();
                outcome = "aborted";
            }
        } catch (RuntimeException e) {
            outcome = e.getClass().getSimpleName();
        }
        System.out.println("transaction-" + name + " " + outcome);
    }

    private static boolean send(
            KafkaProducer<String, String> producer, String topic, String name, int records, boolean bad) {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        List<String> outcomes = new ArrayList<>();
        for (int i = 0; i < records; i++) {
            long now = System.currentTimeMillis();
            long time = bad && i == records / 2 ? now * 1_000_000 : now;
            try {
                futures.add(producer.send(new ProducerRecord<>(topic, 0, time, "key", name + i)));
            } catch (RuntimeException e) {
                futures.add(null);
            }
        }
        boolean sound = true;
        for (int i = 0; i < records; i++) {
            String outcome = "ok";
            try {
                if (futures.get(i) == null) {
                    outcome = "not sent";
                } else {
                    futures.get(i).get();
                }
            } catch (ExecutionException e) {
                outcome = e.getCause().getClass().getSimpleName();
            } catch (InterruptedException e) {
                outcome = "interrupted";
            }
            sound &= outcome.equals("ok");
            System.out.println(name + i + " " + outcome);
        }
        return sound;
    }
}
