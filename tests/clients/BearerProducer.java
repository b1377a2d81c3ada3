import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends one record with a timestamp after an OAUTHBEARER login with two claims; prints its result. */
public class BearerProducer {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", "OAUTHBEARER");
        settings.put("sasl.jaas.config",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
                + " unsecuredLoginStringClaim_sub=\"" + given[3] + "\""
                + " unsecuredLoginStringClaim_preferred_username=\"" + given[4] + "\";");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(given[1], null, Long.parseLong(given[2]), null, "v")).get();
            System.out.println("ok");
        } catch (ExecutionException error) {
            System.out.println(error.getCause().getClass().getSimpleName());
        }
    }
}
