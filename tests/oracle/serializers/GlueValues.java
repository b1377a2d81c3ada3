import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.deserializers.GlueSchemaRegistryDeserializerDataParser;
import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistrySerializationFacade;
import com.amazonaws.services.schemaregistry.serializers.json.JsonDataWithSchema;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.services.glue.model.DataFormat;

/**
 * Serializes values as AWS's serializers do. Each line: NONE or ZLIB, the format, the UUID of a schema's version, the
 * schema in base64 (of Protobuf, a FileDescriptorProto and the path of a message), and the value in base64 (for JSON its
 * text, otherwise its encoding). Output for each: the serialized value and the registered schema text, in base64. A line
 * with READ and a serialized value is read as AWS's deserializers do; its output is the value's encoding, and the UUID.
 */
public class GlueValues {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ", -1);
      if (parts[0].equals("READ")) {
        GlueSchemaRegistryDeserializerDataParser parser = GlueSchemaRegistryDeserializerDataParser.getInstance();
        ByteBuffer given = ByteBuffer.wrap(decoded(parts[1]));
        UUID version = parser.getSchemaVersionId(given);
        given.rewind();
        System.out.println(encoded(parser.getPlainData(given)) + " " + version);
        continue;
      }
      Map<String, Object> settings = new HashMap<>();
      settings.put("region", "eu-west-1");
      settings.put("compression", parts[0]);
      settings.put("protobufMessageType", "DYNAMIC_MESSAGE");
      GlueSchemaRegistrySerializationFacade facade =
          GlueSchemaRegistrySerializationFacade.builder()
              .glueSchemaRegistryConfiguration(new GlueSchemaRegistryConfiguration(settings))
              .credentialProvider(AnonymousCredentialsProvider.create())
              .build();
      DataFormat format = DataFormat.fromValue(parts[1]);
      Object value = value(format, parts);
      byte[] made = facade.serialize(format, value, UUID.fromString(parts[2]));
      System.out.println(encoded(made) + " " + encoded(facade.getSchemaDefinition(format, value).getBytes(StandardCharsets.UTF_8)));
    }
    System.out.flush();
    System.exit(0);
  }

  private static Object value(DataFormat format, String[] parts) throws Exception {
    String schema = new String(decoded(parts[3].split(":")[0]), StandardCharsets.UTF_8);
    byte[] data = decoded(parts[4]);
    if (format == DataFormat.AVRO) {
      return new GenericDatumReader<Object>(new Schema.Parser().parse(schema))
          .read(null, DecoderFactory.get().binaryDecoder(data, null));
    }
    if (format == DataFormat.JSON) {
      return JsonDataWithSchema.builder(schema, new String(data, StandardCharsets.UTF_8)).build();
    }
    String[] described = parts[3].split(":");
    FileDescriptor file =
        FileDescriptor.buildFrom(FileDescriptorProto.parseFrom(decoded(described[0])), new FileDescriptor[0]);
    Descriptor message = null;
    for (String name : described[1].split("\\.")) {
      message = message == null ? file.findMessageTypeByName(name) : message.findNestedTypeByName(name);
    }
    return DynamicMessage.parseFrom(message, data);
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }

  private static String encoded(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
