import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.requests.ProduceResponse.RecordError;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Kafka's own LogValidator at a fixed time, many batches in one process. Each line "now type before after compacted
 * hex" is answered with "code TAB message TAB index=text TAB ...", 0 being accepted, topic partition t-0.
 */
public class KafkaValidator {
    private static final LogValidator.MetricsRecorder NO_METRICS = new LogValidator.MetricsRecorder() {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    };

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(verdict(line.split(" ")));
        }
        out.flush();
    }

    private static String verdict(String[] words) {
        try {
            validate(words);
            return "0\t";
        } catch (RecordValidationException e) {
            StringBuilder text = new StringBuilder();
            text.append(Errors.forException(e.invalidException()).code()).append('\t').append(e.invalidException().getMessage());
            for (RecordError error : e.recordErrors()) {
                text.append('\t').append(error.batchIndex).append('=').append(error.message);
            }
            return text.toString();
        } catch (UnsupportedOperationException e) {
            return "renumber\t"; // good so far, but its inner offsets are not 0, 1, 2, ...
        } catch (Throwable e) {
            return Errors.forException(e).code() + "\t";
        }
    }

    private static void validate(String[] words) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(words[5])));
        MutableRecordBatch first = records.batches().iterator().next();
        if (!first.isValid()) {
            throw new CorruptRecordException("crc");
        }
        long now = Long.parseLong(words[0]);
        CompressionType codec = first.compressionType();
        Time time = (Time) Proxy.newProxyInstance(KafkaValidator.class.getClassLoader(), new Class<?>[] {Time.class},
            (self, method, arguments) -> method.getName().equals("milliseconds") ? now : System.nanoTime());
        new LogValidator(records, new TopicPartition("t", 0), time, codec, Compression.of(codec).build(),
            Boolean.parseBoolean(words[4]), (byte) 2, TimestampType.forName(words[1]), Long.parseLong(words[2]),
            Long.parseLong(words[3]), 0, AppendOrigin.CLIENT)
            .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), NO_METRICS, BufferSupplier.create());
    }
}
