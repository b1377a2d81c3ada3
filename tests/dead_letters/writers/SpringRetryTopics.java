import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Listens to a topic with retry topics, which it creates. The last one is its topic of dead letters, TOPIC-dlt. Prints a
 * line for each record that arrives in it. Arguments: bootstrap, topic, number of letters after which it ends.
 */
public class SpringRetryTopics {
    static CountDownLatch letters;

    public static class Listener {
        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 1), numPartitions = "3")
        @KafkaListener(id = "packers", topics = "${topic}")
        public void listen(ConsumerRecord<byte[], byte[]> record) {
            throw new IllegalStateException("order " + new String(record.value(), StandardCharsets.UTF_8) + " has no lines");
        }

        @DltHandler
        public void count(ConsumerRecord<byte[], byte[]> record) {
            System.out.println("letter " + new String(record.value(), StandardCharsets.UTF_8));
            letters.countDown();
        }
    }

    @Configuration
    @EnableKafkaRetryTopic
    public static class Beans {
        private final Map<String, Object> cluster = Map.of("bootstrap.servers", System.getProperty("bootstrap"));

        @Bean
        public Listener listener() {
            return new Listener();
        }

        @Bean
        public TaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @Bean
        public KafkaAdmin admin() {
            return new KafkaAdmin(cluster);
        }

        @Bean
        public KafkaTemplate<byte[], byte[]> defaultRetryTopicKafkaTemplate() {
            return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(
                    cluster, new ByteArraySerializer(), new ByteArraySerializer()));
        }

        @Bean
        public ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory() {
            ConcurrentKafkaListenerContainerFactory<byte[], byte[]> factory =
                    new ConcurrentKafkaListenerContainerFactory<>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(
                    Map.of("bootstrap.servers", System.getProperty("bootstrap"), "auto.offset.reset", "earliest"),
                    new ByteArrayDeserializer(),
                    new ByteArrayDeserializer()));
            return factory;
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("bootstrap", arguments[0]);
        System.setProperty("topic", arguments[1]);
        letters = new CountDownLatch(Integer.parseInt(arguments[2]));
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Beans.class)) {
            letters.await();
        }
    }
}
