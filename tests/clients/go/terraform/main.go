// The requests of Terraform's Kafka provider (Mongey/kafka), which uses sarama; test_terraform_calls.py describes them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	client, err := sarama.NewClient([]string{os.Args[1]}, config)
	check(err)
	controller, err := client.Controller()
	check(err)
	command, topic, settings := os.Args[2], os.Args[3], settingsOf(os.Args[4:])
	switch command {
	case "create":
		request := sarama.NewCreateTopicsRequest(config.Version, map[string]*sarama.TopicDetail{
			topic: {NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: settings},
		}, 30*time.Second, false)
		response, err := controller.CreateTopics(request)
		check(err)
		for _, failed := range response.TopicErrors {
			if failed.Err != sarama.ErrNoError {
				check(failed)
			}
		}
	case "read":
		read(controller, topic)
	case "replace":
		resource := &sarama.AlterConfigsResource{Type: sarama.TopicResource, Name: topic, ConfigEntries: settings}
		response, err := controller.AlterConfigs(&sarama.AlterConfigsRequest{Resources: []*sarama.AlterConfigsResource{resource}})
		check(err)
		checkResources(response.Resources)
	case "change":
		entries := map[string]sarama.IncrementalAlterConfigsEntry{}
		for name, value := range settings {
			operation := sarama.IncrementalAlterConfigsOperationSet
			if *value == "" {
				operation, value = sarama.IncrementalAlterConfigsOperationDelete, nil
			}
			entries[name] = sarama.IncrementalAlterConfigsEntry{Operation: operation, Value: value}
		}
		resource := &sarama.IncrementalAlterConfigsResource{Type: sarama.TopicResource, Name: topic, ConfigEntries: entries}
		response, err := controller.IncrementalAlterConfigs(&sarama.IncrementalAlterConfigsRequest{
			Version: 1, Resources: []*sarama.IncrementalAlterConfigsResource{resource},
		})
		check(err)
		checkResources(response.Resources)
	case "delete":
		request := sarama.NewDeleteTopicsRequest(config.Version, []string{topic}, 30*time.Second)
		response, err := controller.DeleteTopics(request)
		check(err)
		for _, code := range response.TopicErrorCodes {
			if code != sarama.ErrNoError {
				check(code)
			}
		}
	}
}

// read prints as JSON the settings whose source is the topic.
func read(broker *sarama.Broker, topic string) {
	response, err := broker.DescribeConfigs(&sarama.DescribeConfigsRequest{
		Version: 1, Resources: []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}},
	})
	check(err)
	found := map[string]string{}
	for _, resource := range response.Resources {
		if resource.ErrorCode != 0 {
			check(fmt.Errorf("%s: %s", sarama.KError(resource.ErrorCode), resource.ErrorMsg))
		}
		for _, entry := range resource.Configs {
			if entry.Source == sarama.SourceTopic {
				found[entry.Name] = entry.Value
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(found))
}

func settingsOf(arguments []string) map[string]*string {
	settings := map[string]*string{}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		settings[name] = &value
	}
	return settings
}

func checkResources(resources []*sarama.AlterConfigsResourceResponse) {
	for _, resource := range resources {
		if resource.ErrorCode != 0 {
			check(fmt.Errorf("%s: %s", sarama.KError(resource.ErrorCode), resource.ErrorMsg))
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
