import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends one record with a timestamp; prints "ok" or its exception. Arguments: servers, topic, timestamp, NAME=VALUE... */
public class OneRecord {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        for (int i = 3; i < given.length; i++) {
            String[] setting = given[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(given[1], null, Long.parseLong(given[2]), null, "v")).get();
            System.out.println("ok");
        } catch (ExecutionException error) {
            System.out.println(error.getCause().getClass().getSimpleName());
        }
    }
}
