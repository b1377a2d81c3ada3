"""The command `sluicegate-spark advise`."""

from dataclasses import replace
from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import (
    AFTER_MAX_MS,
    AllTopics,
    AsJson,
    Bootstrap,
    ConfigFile,
    Master,
    Out,
    SparkLog,
    TopicPatterns,
)
from sluicegate.pipeline.commands.policy_file import PolicyFile, load_optional_configuration, owners_by_topic
from sluicegate.pipeline.commands.running import (
    SparkOptions,
    now_in_ms,
    open_job_session,
    print_table,
    selected_topics,
    show_json,
)


def advise(
    bootstrap: Bootstrap,
    out: Out,
    topic: TopicPatterns = None,
    all_topics: AllTopics = False,
    from_profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="DIR", help="Folder of an earlier profile. Default: the job creates a profile first."
        ),
    ] = None,
    at_most: Annotated[float, typer.Option(help="Share of valid records that a limit may reject.", min=0, max=1)] = 0,
    as_json: AsJson = False,
    policies: PolicyFile = None,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Recommend before.max and after.max for topics, with what each would reject, and print the configuration."""
    from sluicegate.pipeline.jobs.advise import report
    from sluicegate.pipeline.jobs.advise.full_enforcement import enforcement_sentence, estimate_enforcement_effects
    from sluicegate.pipeline.jobs.advise.job import YAML, advise_all_topics, build_summary, make_profile, read_profile
    from sluicegate.pipeline.jobs.advise.report import conclusion

    configuration = load_optional_configuration(policies)
    topics = selected_topics(bootstrap, topic, all_topics, config)
    topics = replace(topics, owners=owners_by_topic(configuration, topics.names))
    with open_job_session("advise", topics, out, SparkOptions(master, spark_log)) as (spark, results):
        results.delete_summary()
        now_ms = now_in_ms()
        profile_results = (
            read_profile(spark, topics, from_profile)
            if from_profile
            else make_profile(spark, topics, results, now_ms, AFTER_MAX_MS)
        )
        advice = advise_all_topics(topics, profile_results, at_most)
        summary, yaml = build_summary(advice, topics, at_most)
        found = (
            estimate_enforcement_effects(configuration, topics, profile_results) if configuration is not None else []
        )
        for each in found:
            summary["topics"][each.topic]["full_enforcement"] = each.as_json()
        results.write_text(YAML, yaml)
        report.write_report(results, profile_results, advice, summary, found, now_ms)
        results.write_summary(summary)
        if as_json:
            show_json(summary)
            return
        typer.echo(conclusion(advice))
        print_table(report.console_table(advice), out)
        if found:
            typer.echo(enforcement_sentence(found))
        typer.echo(yaml)
