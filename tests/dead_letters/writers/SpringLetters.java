import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.listener.KafkaMessageListenerContainer;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.listener.RetryListener;
import org.springframework.kafka.support.serializer.DelegatingByTypeSerializer;
import org.springframework.kafka.support.serializer.ErrorHandlingDeserializer;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Listens to a topic of Integer keys and Long values. DeadLetterPublishingRecoverer writes its dead letters.
 * Prints a line for each record that it recovers. Arguments: bootstrap, topic, topic of dead letters, number of letters
 * after which it ends.
 */
public class SpringLetters {
    static String encoded(String text) {
        return text == null ? "-" : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    static void listen(ConsumerRecord<Integer, Long> record) {
        long value = record.value();
        switch ((int) Math.floorMod(value, 4L)) {
            case 0: throw new IllegalStateException("order " + value + " has no lines: \u00fc");
            case 1: throw new IllegalArgumentException();
            case 2: throw new UnsupportedOperationException("refund", new RuntimeException("not in this release"));
            default: return;
        }
    }

    public static void main(String[] arguments) throws Exception {
        CountDownLatch letters = new CountDownLatch(Integer.parseInt(arguments[3]));
        DelegatingByTypeSerializer serializer = new DelegatingByTypeSerializer(new LinkedHashMap<>(Map.of(
                byte[].class, new ByteArraySerializer(),
                Integer.class, new IntegerSerializer(),
                Long.class, new LongSerializer())));
        KafkaTemplate<Object, Object> template = new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(
                Map.of("bootstrap.servers", arguments[0], "linger.ms", 0), serializer, serializer));
        DefaultErrorHandler handler = new DefaultErrorHandler(
                new DeadLetterPublishingRecoverer(
                        template, (record, error) -> new TopicPartition(arguments[2], record.partition())),
                new FixedBackOff(0, 2));
        handler.addNotRetryableExceptions(
                IllegalStateException.class, IllegalArgumentException.class, UnsupportedOperationException.class);
        handler.setSeekAfterError(false);
        Map<String, Integer> attempts = new HashMap<>();
        handler.setRetryListeners(new RetryListener() {
            @Override
            public void failedDelivery(ConsumerRecord<?, ?> record, Exception error, int attempt) {
                attempts.put(record.partition() + " " + record.offset(), attempt);
            }

            @Override
            public void recovered(ConsumerRecord<?, ?> record, Exception error) {
                String place = record.partition() + " " + record.offset();
                Throwable cause = error.getCause();
                System.out.println("error " + place + " " + cause.getClass().getName() + " "
                        + encoded(cause.getMessage()) + " " + attempts.remove(place));
                letters.countDown();
            }
        });
        ContainerProperties properties = new ContainerProperties(arguments[1]);
        properties.setGroupId("packers");
        properties.setDeliveryAttemptHeader(true);
        properties.setPollTimeoutWhilePaused(Duration.ofMillis(1));
        properties.setMessageListener((MessageListener<Integer, Long>) SpringLetters::listen);
        KafkaMessageListenerContainer<Integer, Long> container = new KafkaMessageListenerContainer<>(
                new DefaultKafkaConsumerFactory<>(
                        Map.of("bootstrap.servers", arguments[0], "auto.offset.reset", "earliest"),
                        new ErrorHandlingDeserializer<>(new IntegerDeserializer()),
                        new ErrorHandlingDeserializer<>(new LongDeserializer())),
                properties);
        container.setCommonErrorHandler(handler);
        container.start();
        letters.await();
        container.stop();
        template.destroy();
    }
}
