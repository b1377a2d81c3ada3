// sarama client of the matrix; tests/clients/programs.py describes the commands.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	bootstrap, command, topic := []string{os.Args[1]}, os.Args[2], os.Args[3]
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	switch command {
	case "produce-default":
		produce(bootstrap, config, topic, "default")
	case "produce-strict":
		config.Version = sarama.V3_6_0_0
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Producer.Idempotent = true
		config.Producer.Compression = sarama.CompressionZSTD
		config.Net.MaxOpenRequests = 1
		produce(bootstrap, config, topic, "strict")
	case "consume":
		count, _ := strconv.Atoi(os.Args[4])
		config.Consumer.Offsets.Initial = sarama.OffsetOldest
		consume(bootstrap, config, topic, count)
	case "topics":
		client, err := sarama.NewClient(bootstrap, config)
		check(err)
		names, err := client.Topics()
		check(err)
		for _, name := range names {
			fmt.Println(name)
		}
	case "create":
		admin, err := sarama.NewClusterAdmin(bootstrap, config)
		check(err)
		check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false))
	case "compressed":
		level, err := strconv.Atoi(os.Args[5])
		check(err)
		check(config.Producer.Compression.UnmarshalText([]byte(os.Args[4])))
		config.Producer.CompressionLevel = level
		config.Version = sarama.V3_6_0_0
		config.Producer.Flush.Messages = 500
		config.Producer.Flush.Frequency = time.Second
		producer, err := sarama.NewSyncProducer(bootstrap, config)
		check(err)
		var messages []*sarama.ProducerMessage
		for i := 0; i < 500; i++ {
			value := sarama.StringEncoder(strings.Repeat("v", i*7%900))
			messages = append(messages, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"), Value: value})
		}
		check(producer.SendMessages(messages))
		check(producer.Close())
	case "read":
		read(bootstrap, config, topic, os.Args[4], os.Args[5])
	case "reject":
		reject(bootstrap, config, topic)
	}
}

// read prints offsets and values up to the value last, up to an error, or until no record arrives for some seconds.
func read(bootstrap []string, config *sarama.Config, topic, last, seconds string) {
	timeoutSeconds, err := strconv.Atoi(seconds)
	check(err)
	config.Version = sarama.V3_6_0_0
	config.Consumer.Return.Errors = true
	consumer, err := sarama.NewConsumer(bootstrap, config)
	check(err)
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	check(err)
	for {
		select {
		case message := <-partition.Messages():
			fmt.Println(message.Offset, string(message.Value))
			if string(message.Value) == last {
				return
			}
		case failed := <-partition.Errors():
			fmt.Println("error", failed)
			return
		case <-time.After(time.Duration(timeoutSeconds) * time.Second):
			fmt.Println("error nothing comes")
			return
		}
	}
}

func produce(bootstrap []string, config *sarama.Config, topic, label string) {
	producer, err := sarama.NewSyncProducer(bootstrap, config)
	check(err)
	for i := 0; i < 10; i++ {
		value := sarama.StringEncoder(fmt.Sprintf("%s %d", label, i))
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"), Value: value})
		check(err)
	}
	check(producer.Close())
}

type printer struct {
	left int
	done context.CancelFunc
}

func (p *printer) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (p *printer) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (p *printer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			fmt.Println(string(message.Value))
			session.MarkMessage(message, "")
			p.left--
			if p.left == 0 {
				session.Commit()
				p.done()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func consume(bootstrap []string, config *sarama.Config, topic string, count int) {
	group, err := sarama.NewConsumerGroup(bootstrap, topic+"-group", config)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	handler := &printer{count, cancel}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{topic}, handler); err != nil && ctx.Err() == nil {
			check(err)
		}
	}
	check(group.Close())
	if handler.left > 0 {
		check(fmt.Errorf("%d records did not come", handler.left))
	}
}

func reject(bootstrap []string, config *sarama.Config, topic string) {
	config.Version = sarama.V2_4_0_0
	config.Producer.Flush.Messages = 3
	config.Producer.Flush.Frequency = time.Second
	producer, err := sarama.NewSyncProducer(bootstrap, config)
	check(err)
	now := time.Now()
	var messages []*sarama.ProducerMessage
	for i, at := range []time.Time{now, time.UnixMilli(now.UnixMilli() * 1000000), now} {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"),
			Value: sarama.StringEncoder(string(rune('a' + i))), Timestamp: at})
	}
	if err := producer.SendMessages(messages); err != nil {
		for _, failed := range err.(sarama.ProducerErrors) {
			fmt.Println(failed.Err)
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
