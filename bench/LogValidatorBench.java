import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/**
 * What a broker does to a batch before it stores it (CRC, then LogValidator), timed on batches that are also written
 * to a folder, so that sluicegate is timed on the same bytes. Arguments: FOLDER SECONDS_EACH. Prints, for each batch,
 * its file's name and the best time in ns.
 */
public class LogValidatorBench {
    private static final LogValidator.MetricsRecorder NO_METRICS = new LogValidator.MetricsRecorder() {
        @Override public void recordInvalidMagic() {}
        @Override public void recordInvalidOffset() {}
        @Override public void recordInvalidSequence() {}
        @Override public void recordInvalidChecksums() {}
        @Override public void recordNoKeyCompactedTopic() {}
    };
    private static final int[][] COUNTS_AND_SIZES = {{10_000, 100}, {1_000, 1_000}};

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        long nanos = (long) (Double.parseDouble(args[1]) * 1e9);
        BufferSupplier buffers = BufferSupplier.create();
        for (CompressionType codec : CompressionType.values()) {
            for (int[] shape : COUNTS_AND_SIZES) {
                byte[] batch = batch(codec, shape[0], shape[1]);
                String name = codec.name + "-" + shape[0] + "-" + shape[1] + ".batch";
                Files.write(folder.resolve(name), batch);
                long best = Long.MAX_VALUE;
                for (long end = System.nanoTime() + nanos; System.nanoTime() < end; ) {
                    best = Math.min(best, validate(batch.clone(), codec, buffers));
                }
                System.out.println(name + " " + best);
            }
        }
    }

    /** Values of JSON-like text that compresses by half, times within 50 ms. */
    private static byte[] batch(CompressionType codec, int count, int size) {
        Random random = new Random(11);
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(count * (size + 64)), (byte) 2,
            Compression.of(codec).build(), TimestampType.CREATE_TIME, 0L);
        long now = System.currentTimeMillis();
        for (int i = 0; i < count; i++) {
            StringBuilder value = new StringBuilder("{\"order\":" + i + ",\"cents\":" + random.nextInt(100_000) + ",\"note\":\"");
            while (value.length() < size - 2) value.append((char) ('a' + random.nextInt(12)));
            value.setLength(size - 2);
            builder.append(now + i % 50, ("key" + i).getBytes(), value.append("\"}").toString().getBytes());
        }
        ByteBuffer built = builder.build().buffer();
        byte[] bytes = new byte[built.remaining()];
        built.get(bytes);
        return bytes;
    }

    private static long validate(byte[] bytes, CompressionType codec, BufferSupplier buffers) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
        long start = System.nanoTime();
        for (MutableRecordBatch batch : records.batches()) batch.ensureValid();
        new LogValidator(records, new TopicPartition("bench", 0), Time.SYSTEM, codec, Compression.of(codec).build(), true,
            (byte) 2, TimestampType.CREATE_TIME, 86_400_000L, 3_600_000L, 0, AppendOrigin.CLIENT)
            .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), NO_METRICS, buffers);
        return System.nanoTime() - start;
    }
}
