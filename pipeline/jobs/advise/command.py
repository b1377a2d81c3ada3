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
from sluicegate.pipeline.commands.policy_file import PolicyFile, configuration_in, owners_of
from sluicegate.pipeline.commands.running import (
    SparkAt,
    now_in_ms,
    print_table,
    selected_topics,
    session_for,
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
    from sluicegate.pipeline.jobs.advise.full_enforcement import effect_of, enforcement_sentence
    from sluicegate.pipeline.jobs.advise.job import YAML, advice_of, make_profile, read_profile, summary_of
    from sluicegate.pipeline.jobs.advise.report import conclusion

    configuration = configuration_in(policies)
    topics = selected_topics(bootstrap, topic, all_topics, config)
    topics = replace(topics, owners=owners_of(configuration, topics.names))
    with session_for("advise", topics, out, SparkAt(master, spark_log)) as (spark, results):
        results.forget_summary()
        now_ms = now_in_ms()
        profile_results = (
            read_profile(spark, topics, from_profile)
            if from_profile
            else make_profile(spark, topics, results, now_ms, AFTER_MAX_MS)
        )
        advice = advice_of(topics, profile_results, at_most)
        summary, yaml = summary_of(advice, topics, at_most)
        found = effect_of(configuration, topics, profile_results) if configuration is not None else []
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
