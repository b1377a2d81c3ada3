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
 * Sends numbered records, each in its own batch, five requests in flight. The timestamp of one in the middle is bad, or
 * its key is missing. A batch size of 0 alone does not separate them: a batch has room for the largest size of its first
 * record, about 17 bytes more than the actual size, and a second record that fits goes into the same batch.
 * Idempotent: one stream. Transactional: one with the bad record (aborted), one that commits, one that aborts, one that
 * commits; a time may be bad in each of them. Prints "value outcome" for each record and "transaction outcome" for each transaction.
 */
public class StatefulProducer {
    private static final byte[] TOO_LARGE_TO_SHARE = new byte[64];

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        boolean transactional = args[2].equals("transactional");
        int records = Integer.parseInt(args[3]);
        boolean byKey = args[4].equals("key");
        boolean always = args[4].equals("time, always");
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("linger.ms", "0");
        settings.put("batch.size", "0");
        settings.put("max.in.flight.requests.per.connection", "5");
        settings.put("enable.idempotence", "true");
        settings.put("compression.type", args[5]);
        if (transactional) {
            settings.put("transactional.id", topic);
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (!transactional) {
                send(producer, topic, "a", records, true, byKey);
                return;
            }
            producer.initTransactions();
            transaction(producer, topic, "a", records, true, false, byKey);
            transaction(producer, topic, "b", records, always, true, byKey);
            transaction(producer, topic, "c", records, always, false, byKey);
            transaction(producer, topic, "d", records, always, true, byKey);
        }
    }

    private static void transaction(
            KafkaProducer<String, String> producer, String topic, String name, int records, boolean bad, boolean commit,
            boolean byKey) {
        String outcome;
        try {
            producer.beginTransaction();
            boolean sound = send(producer, topic, name, records, bad, byKey);
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
            KafkaProducer<String, String> producer, String topic, String name, int records, boolean bad, boolean byKey) {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        List<String> outcomes = new ArrayList<>();
        for (int i = 0; i < records; i++) {
            long now = System.currentTimeMillis();
            boolean isBad = bad && i == records / 2;
            long time = isBad && !byKey ? now * 1_000_000 : now;
            String key = isBad && byKey ? null : "key";
            try {
                ProducerRecord<String, String> record = new ProducerRecord<>(topic, 0, time, key, name + i);
                record.headers().add("alone", TOO_LARGE_TO_SHARE);
                futures.add(producer.send(record));
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
