// franz-go client of the matrix; tests/clients/programs.py describes the commands.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap, command, topic := os.Args[1], os.Args[2], os.Args[3]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ProducerLinger(200 * time.Millisecond)}
	switch command {
	case "produce-default":
		produce(ctx, open(options...), topic, "default")
	case "produce-strict":
		strict := open(append(options, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.TransactionalID(topic),
			kgo.ProducerBatchCompression(kgo.ZstdCompression()))...)
		check(strict.BeginTransaction())
		produce(ctx, strict, topic, "strict")
		check(strict.EndTransaction(ctx, kgo.TryCommit))
	case "consume":
		count, _ := strconv.Atoi(os.Args[4])
		consume(ctx, open(append(options, kgo.ConsumerGroup(topic+"-group"), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...), count)
	case "topics":
		found, err := kadm.NewClient(open(options...)).ListTopics(ctx)
		check(err)
		for _, name := range found.Names() {
			fmt.Println(name)
		}
	case "create":
		_, err := kadm.NewClient(open(options...)).CreateTopic(ctx, 2, 1, nil, topic)
		check(err)
	case "compressed":
		level, err := strconv.Atoi(os.Args[5])
		check(err)
		codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
			"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
		client := open(append(options, kgo.ProducerBatchCompression(codecs[os.Args[4]].WithLevel(level)))...)
		var records []*kgo.Record
		for i := 0; i < 500; i++ {
			records = append(records, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(strings.Repeat("v", i*7%900))})
		}
		check(client.ProduceSync(ctx, records...).FirstErr())
	case "read":
		read(open(append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			topic: {0: kgo.NewOffset().AtStart()}}))...), os.Args[4], os.Args[5])
	case "reject":
		reject(ctx, open(options...), topic)
	}
}

// read prints offsets and values up to the value last, up to an error, or until no record arrives for some seconds.
func read(client *kgo.Client, last, seconds string) {
	timeoutSeconds, err := strconv.Atoi(seconds)
	check(err)
	for seen := ""; seen != last; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(timeoutSeconds)*time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		fetches.EachRecord(func(record *kgo.Record) {
			seen = string(record.Value)
			fmt.Println(record.Offset, seen)
		})
		if err := fetches.Err(); err != nil {
			fmt.Println("error", err)
			return
		}
	}
}

func open(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(options...)
	check(err)
	return client
}

func produce(ctx context.Context, client *kgo.Client, topic, label string) {
	for i := 0; i < 10; i++ {
		record := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(fmt.Sprintf("%s %d", label, i))}
		check(client.ProduceSync(ctx, record).FirstErr())
	}
}

func consume(ctx context.Context, client *kgo.Client, count int) {
	for seen := 0; seen < count; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			seen++
		})
	}
	check(client.CommitUncommittedOffsets(ctx))
	client.LeaveGroup()
}

func reject(ctx context.Context, client *kgo.Client, topic string) {
	now := time.Now()
	var records []*kgo.Record
	for i, at := range []time.Time{now, time.UnixMilli(now.UnixMilli() * 1000000), now} {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte{byte('a' + i)}, Timestamp: at})
	}
	for _, result := range client.ProduceSync(ctx, records...) {
		fmt.Println(result.Err)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
