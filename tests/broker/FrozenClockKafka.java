import java.io.FileInputStream;
import java.util.Properties;
import java.util.function.Supplier;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;

/** A broker with a frozen clock in its record validator; everything else uses the real clock. */
public class FrozenClockKafka {
    private static final StackWalker STACK = StackWalker.getInstance();

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) {
            settings.load(file);
        }
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(settings, false), new Clock(Long.getLong("frozen.at")));
        server.startup();
        server.awaitShutdown();
    }

    private record Clock(long frozenAt) implements Time {
        @Override
        public long milliseconds() {
            boolean validating =
                    STACK.walk(frames -> frames.limit(4).anyMatch(frame -> frame.getClassName().endsWith(".LogValidator")));
            return validating ? frozenAt : SYSTEM.milliseconds();
        }

        @Override
        public long hiResClockMs() {
            return SYSTEM.hiResClockMs();
        }

        @Override
        public long nanoseconds() {
            return SYSTEM.nanoseconds();
        }

        @Override
        public void sleep(long ms) {
            SYSTEM.sleep(ms);
        }

        @Override
        public void waitObject(Object lock, Supplier<Boolean> condition, long deadlineMs) throws InterruptedException {
            SYSTEM.waitObject(lock, condition, deadlineMs);
        }
    }
}
