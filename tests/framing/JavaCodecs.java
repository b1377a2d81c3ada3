import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Produces 500 records of all sizes with each codec and level: BOOTSTRAP TOPIC CODEC:LEVEL... (no level: its own). */
public class JavaCodecs {
    public static void main(String[] args) throws Exception {
        Random chance = new Random(1);
        for (int a = 2; a < args.length; a++) {
            String[] wanted = args[a].split(":");
            Properties settings = new Properties();
            settings.put("bootstrap.servers", args[0]);
            settings.put("linger.ms", "200");
            settings.put("compression.type", wanted[0]);
            if (wanted.length > 1) {
                settings.put("compression." + wanted[0] + ".level", wanted[1]);
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            try (KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int i = 0; i < 500; i++) {
                    byte[] value = new byte[i * 7 % 900];
                    if (i % 3 == 0) {
                        chance.nextBytes(value);
                    }
                    sent.add(producer.send(new ProducerRecord<>(args[1], new byte[] {'k'}, value)));
                }
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
            System.out.println("Java " + args[a]);
        }
    }
}
