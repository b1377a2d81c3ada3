import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.DefaultProductionExceptionHandler;
import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Processes a topic of Integer keys and Long values, with Kafka's own handlers of errors, which write dead letters.
 * Prints a line for each error that a handler is called with. Arguments: bootstrap, topic, topic of dead letters, topic
 * of results, number of errors after which it ends, folder of states.
 */
public class StreamsLetters {
    static CountDownLatch errors;

    static void report(ErrorHandlerContext context, Exception error) {
        String text = error.getMessage() == null
                ? "-" : Base64.getEncoder().encodeToString(error.getMessage().getBytes(StandardCharsets.UTF_8));
        System.out.println(
                "error " + context.partition() + " " + context.offset() + " " + error.getClass().getName() + " " + text);
        errors.countDown();
    }

    public static class OfValues extends LogAndContinueExceptionHandler {
        @Override
        public Response handleError(
                ErrorHandlerContext context, ConsumerRecord<byte[], byte[]> record, Exception error) {
            report(context, error);
            return super.handleError(context, record, error);
        }
    }

    public static class OfProcessors extends LogAndContinueProcessingExceptionHandler {
        @Override
        public Response handleError(ErrorHandlerContext context, Record<?, ?> record, Exception error) {
            report(context, error);
            return super.handleError(context, record, error);
        }
    }

    public static class OfResults extends DefaultProductionExceptionHandler {
        @Override
        @SuppressWarnings("rawtypes")
        public Response handleSerializationError(
                ErrorHandlerContext context,
                ProducerRecord record,
                Exception error,
                SerializationExceptionOrigin origin) {
            report(context, error);
            return Response.resume(
                    super.handleSerializationError(context, record, error, origin).deadLetterQueueRecords());
        }
    }

    static byte[] withoutNegatives(String topic, Long value) {
        if (value < 0) {
            throw new SerializationException("negative");
        }
        return Serdes.Long().serializer().serialize(topic, value);
    }

    static long processed(long value) {
        switch ((int) Math.floorMod(value, 4L)) {
            case 0: throw new IllegalStateException("order " + value + " has no lines: \u00fc");
            case 1: throw new IllegalArgumentException();
            case 2: throw new UnsupportedOperationException("refund", new RuntimeException("not in this release"));
            default: return value;
        }
    }

    public static void main(String[] arguments) throws Exception {
        errors = new CountDownLatch(Integer.parseInt(arguments[4]));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams-" + arguments[1]);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[5]);
        settings.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, OfValues.class);
        settings.put(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, OfProcessors.class);
        settings.put(StreamsConfig.PRODUCTION_EXCEPTION_HANDLER_CLASS_CONFIG, OfResults.class);
        settings.put(StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG, arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[1], Consumed.with(Serdes.Integer(), Serdes.Long()))
                .mapValues(StreamsLetters::processed)
                .to(arguments[3], Produced.with(
                        Serdes.Integer(), Serdes.serdeFrom(StreamsLetters::withoutNegatives, Serdes.Long().deserializer())));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.start();
            errors.await();
        }
    }
}
