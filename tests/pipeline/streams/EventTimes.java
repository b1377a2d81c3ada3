import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Prints partition, offset and event time of each record that Kafka Streams hands on, until each partition's record with
 * the value "end" has come, or until Streams fails: then "failed" and what it says.
 * Arguments: bootstrap, topic, how many partitions, the extractor's class, a folder.
 */
public class EventTimes {
    public static void main(String[] args) throws Exception {
        int partitions = Integer.parseInt(args[2]);
        Set<Integer> ended = ConcurrentHashMap.newKeySet();
        CountDownLatch done = new CountDownLatch(1);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "event-times-" + args[1] + "-" + System.nanoTime());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
        settings.put(StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG, Class.forName(args[3]).asSubclass(TimestampExtractor.class));
        settings.put("auto.offset.reset", "earliest");
        Topology topology = new Topology();
        topology.addSource("records", Serdes.ByteArray().deserializer(), Serdes.String().deserializer(), args[1]);
        topology.addProcessor("printer", () -> new Processor<byte[], String, Void, Void>() {
            private ProcessorContext<Void, Void> context;

            @Override
            public void init(ProcessorContext<Void, Void> context) {
                this.context = context;
            }

            @Override
            public void process(Record<byte[], String> record) {
                var at = context.recordMetadata().get();
                synchronized (System.out) {
                    System.out.println(at.partition() + " " + at.offset() + " " + record.timestamp());
                }
                if ("end".equals(record.value()) && ended.add(at.partition()) && ended.size() == partitions) {
                    done.countDown();
                }
            }
        }, "records");
        KafkaStreams streams = new KafkaStreams(topology, settings);
        streams.setUncaughtExceptionHandler(failure -> {
            Throwable cause = failure;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println("failed " + cause.getMessage().replace('\n', ' '));
            done.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        done.await();
        streams.close(Duration.ofSeconds(10));
    }
}
