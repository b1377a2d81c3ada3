import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;

/** Writes each DER-encoded distinguished name of its input (hexadecimal, one a line) as Kafka's default principal
 *  builder does, in base64; `invalid` for a name that Java does not accept. */
public class SubjectNames {
    public static void main(String[] arguments) throws Exception {
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder output = new StringBuilder();
        for (String line = names.readLine(); line != null; line = names.readLine()) {
            try {
                String name = new X500Principal(HexFormat.of().parseHex(line)).getName();
                output.append(Base64.getEncoder().encodeToString(name.getBytes(StandardCharsets.UTF_8)));
            } catch (IllegalArgumentException error) {
                output.append("invalid");
            }
            output.append('\n');
        }
        System.out.print(output);
    }
}
