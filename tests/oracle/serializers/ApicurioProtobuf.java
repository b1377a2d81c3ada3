import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaDeserializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Registers a schema and serializes messages. Arguments: the URL of the registry, a topic, whether ids are in headers.
 * With a fourth argument it deserializes: each line is a value in base64, and its headers as NAME:BASE64; the output is
 * each message in base64.
 * The first line is a FileDescriptorProto in base64; each other line is the path of a message and the message in base64.
 * Output for each message: the value in base64, then each header as NAME=BASE64.
 */
public class ApicurioProtobuf {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    if (arguments.length > 3) {
      read(lines, arguments);
      return;
    }
    FileDescriptor file =
        FileDescriptor.buildFrom(FileDescriptorProto.parseFrom(decoded(lines.readLine())), new FileDescriptor[0]);
    Map<String, Object> settings = new HashMap<>();
    settings.put("apicurio.registry.url", arguments[0]);
    settings.put("apicurio.registry.auto-register", "true");
    settings.put("apicurio.registry.headers.enabled", arguments[2]);
    try (ProtobufKafkaSerializer<DynamicMessage> serializer = new ProtobufKafkaSerializer<>()) {
      serializer.configure(settings, false);
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] parts = line.split(" ", -1);
        DynamicMessage message = DynamicMessage.parseFrom(find(file, parts[0]), decoded(parts[1]));
        Headers headers = new RecordHeaders();
        StringBuilder out = new StringBuilder(encoded(serializer.serialize(arguments[1], headers, message)));
        for (Header header : headers) {
          out.append(' ').append(header.key()).append(':').append(encoded(header.value()));
        }
        System.out.println(out);
      }
    }
  }

  private static void read(BufferedReader lines, String[] arguments) throws Exception {
    Map<String, Object> settings = new HashMap<>();
    settings.put("apicurio.registry.url", arguments[0]);
    settings.put("apicurio.registry.headers.enabled", arguments[2]);
    try (ProtobufKafkaDeserializer<DynamicMessage> deserializer = new ProtobufKafkaDeserializer<>()) {
      deserializer.configure(settings, false);
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] parts = line.split(" ", -1);
        Headers headers = new RecordHeaders();
        for (int i = 1; i < parts.length; i++) {
          String[] header = parts[i].split(":", 2);
          byte[] value = decoded(header[1]);
          // Its serializer names the class DynamicMessage in a header, and its deserializer cannot create that class.
          if (!new String(value, StandardCharsets.UTF_8).equals(DynamicMessage.class.getName())) {
            headers.add(header[0], value);
          }
        }
        System.out.println(encoded(deserializer.deserialize(arguments[1], headers, decoded(parts[0])).toByteArray()));
      }
    }
  }

  private static Descriptor find(FileDescriptor file, String path) {
    Descriptor found = null;
    for (String name : path.split("\\.")) {
      found = found == null ? file.findMessageTypeByName(name) : found.findNestedTypeByName(name);
    }
    return found;
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }

  private static String encoded(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
