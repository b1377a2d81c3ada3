import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads lines "MessageName version hex" and answers each with "hex json": the message as Kafka's own classes write it
 * again, and what they understood. A line that they cannot read is answered with "! reason". One process for all cases.
 */
public class KafkaMessages {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                out.println(answer(words[0], Short.parseShort(words[1]), HexFormat.of().parseHex(words[2])));
            } catch (Throwable error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                out.println("! " + cause.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }

    private static String answer(String name, short version, byte[] bytes) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.common.message." + name + "Data");
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = (Message) type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalArgumentException(buffer.remaining() + " bytes left over");
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        Object json = Class.forName(type.getName() + "JsonConverter").getMethod("write", type, short.class, boolean.class)
            .invoke(null, message, version, false);
        return HexFormat.of().formatHex(written.array()) + " " + json;
    }
}
