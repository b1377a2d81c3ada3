import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Registers a schema and serializes data. Arguments: the URL of the registry, a topic, and apicurio.registry.avro.encoding.
 * The first line is the schema in base64; each other line a datum in binary encoding, in base64.
 * Output for each datum: the value in base64, then each header as NAME:BASE64.
 */
public class ApicurioAvro {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    Schema schema = new Schema.Parser().parse(new String(decoded(lines.readLine()), StandardCharsets.UTF_8));
    Map<String, Object> settings = new HashMap<>();
    settings.put("apicurio.registry.url", arguments[0]);
    settings.put("apicurio.registry.auto-register", "true");
    settings.put("apicurio.registry.headers.enabled", "true");
    settings.put("apicurio.registry.artifact-resolver-strategy", "io.apicurio.registry.serde.strategy.TopicIdStrategy");
    settings.put("apicurio.registry.avro.encoding", arguments[2]);
    try (AvroKafkaSerializer<Object> serializer = new AvroKafkaSerializer<>()) {
      serializer.configure(settings, false);
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Object datum =
            new GenericDatumReader<>(schema).read(null, DecoderFactory.get().binaryDecoder(decoded(line), null));
        Headers headers = new RecordHeaders();
        StringBuilder out = new StringBuilder(encoded(serializer.serialize(arguments[1], headers, datum)));
        for (Header header : headers) {
          out.append(' ').append(header.key()).append(':').append(encoded(header.value()));
        }
        System.out.println(out);
      }
    }
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }

  private static String encoded(byte[] data) {
    return Base64.getEncoder().encodeToString(data);
  }
}
