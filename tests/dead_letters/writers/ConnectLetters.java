import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * A sink that reports records as errors, and a transformation that rejects records, both by the text of the value.
 * Connect writes their dead letters. Prints a line for each error.
 */
public class ConnectLetters extends SinkConnector {
    static void report(ConnectRecord<?> record, String stage, Exception error) {
        String text = Base64.getEncoder().encodeToString(error.getMessage().getBytes(StandardCharsets.UTF_8));
        System.out.println("error " + record.value() + " " + stage + " " + error.getClass().getName() + " " + text);
    }

    public static class Rejecting implements Transformation<SinkRecord> {
        @Override
        public SinkRecord apply(SinkRecord record) {
            if (!record.value().toString().startsWith("transformation")) {
                return record;
            }
            RuntimeException error = new IllegalArgumentException("cannot transform \u00fc " + record.value());
            report(record, "TRANSFORMATION", error);
            throw error;
        }

        @Override
        public ConfigDef config() {
            return new ConfigDef();
        }

        @Override
        public void configure(Map<String, ?> settings) {}

        @Override
        public void close() {}
    }

    public static class Sink extends SinkTask {
        @Override
        public void put(Collection<SinkRecord> records) {
            for (SinkRecord record : records) {
                if (record.value().toString().startsWith("sink")) {
                    Exception error = new IllegalStateException("no row for " + record.value());
                    report(record, "TASK_PUT", error);
                    context.errantRecordReporter().report(record, error);
                }
            }
        }

        @Override
        public void start(Map<String, String> settings) {}

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Sink.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int count) {
        return List.of(Map.of());
    }

    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }
}
