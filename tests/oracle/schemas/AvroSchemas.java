import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.RandomData;

/**
 * For each line, a schema in base64: its full name and some data in base64, or why it cannot be used. As in Confluent's
 * serializers, the defaults of a schema that exists are not checked.
 */
public class AvroSchemas {
  public static void main(String[] arguments) throws Exception {
    int count = Integer.parseInt(arguments[0]);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    StringBuilder out = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      out.append(outcome(new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8), count)).append('\n');
    }
    System.out.print(out);
  }

  private static String outcome(String text, int count) throws Exception {
    Schema schema;
    try {
      schema = new Schema.Parser().setValidateDefaults(false).parse(text);
    } catch (RuntimeException error) {
      return "unusable " + String.valueOf(error.getMessage()).split("\n")[0];
    }
    StringBuilder found = new StringBuilder("usable ").append(encoded(schema.getFullName().getBytes(StandardCharsets.UTF_8)));
    try {
      for (Object datum : new RandomData(schema, count, 7)) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<Object>(schema).write(datum, encoder);
        encoder.flush();
        found.append(' ').append(encoded(bytes.toByteArray()));
      }
    } catch (RuntimeException | StackOverflowError error) {
      return found.toString(); // it has no data, such as an enum without symbols or a record within itself
    }
    return found.toString();
  }

  private static String encoded(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
