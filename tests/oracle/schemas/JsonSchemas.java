import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.networknt.schema.JsonSchema;
import com.networknt.schema.JsonSchemaFactory;
import com.networknt.schema.SpecVersion;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.everit.json.schema.Schema;
import org.everit.json.schema.ValidationException;
import org.everit.json.schema.loader.SchemaLoader;
import org.json.JSONObject;
import org.json.JSONTokener;

/**
 * For each line, a list of a schema and values: what everit and networknt find, as 1 or 0 for each value, or "unusable".
 * Both read a schema without $schema as draft 7, as Confluent's libraries do.
 */
public class JsonSchemas {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    StringBuilder out = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode row = mapper.readTree(line);
      out.append(everit(row)).append(' ').append(networknt(row)).append('\n');
    }
    System.out.print(out);
  }

  private static String everit(JsonNode row) {
    try {
      JSONObject text = new JSONObject(row.get(0).toString());
      Schema schema = SchemaLoader.builder().draftV7Support().schemaJson(text).build().load().build();
      StringBuilder found = new StringBuilder("v");
      for (JsonNode value : row.get(1)) {
        try {
          schema.validate(new JSONTokener(value.toString()).nextValue());
          found.append('1');
        } catch (ValidationException error) {
          found.append('0');
        }
      }
      return found.toString();
    } catch (RuntimeException error) {
      return "unusable";
    }
  }

  private static String networknt(JsonNode row) {
    try {
      JsonSchema schema = JsonSchemaFactory.getInstance(SpecVersion.VersionFlag.V7).getSchema(row.get(0));
      StringBuilder found = new StringBuilder("v");
      for (JsonNode value : row.get(1)) {
        found.append(schema.validate(value).isEmpty() ? '1' : '0');
      }
      return found.toString();
    } catch (RuntimeException error) {
      return "unusable";
    }
  }
}
