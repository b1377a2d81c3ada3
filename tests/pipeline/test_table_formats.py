"""If a format is missing, the command names exactly the packages with which its tests have kept tables."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from sluicegate.pipeline.runs.tables import TableFormat, package_of

MAVEN = "{http://maven.apache.org/POM/4.0.0}"
POM = Path(__file__).parent.parent.parent / "pipeline" / "jars" / "tables" / "pom.xml"


def kept_in_tests() -> dict[str, set[str]]:
    """Return the packages by the minor version of Spark that they are made for."""
    profiles = ElementTree.parse(POM).iter(f"{MAVEN}profile")
    return {profile.findtext(f"{MAVEN}id", ""): {*map(_package, dependencies(profile))} for profile in profiles}


def dependencies(profile: ElementTree.Element) -> list[ElementTree.Element]:
    return profile.findall(f"{MAVEN}dependencies/{MAVEN}dependency")


def _package(dependency: ElementTree.Element) -> str:
    return ":".join(dependency.findtext(f"{MAVEN}{part}", "") for part in ("groupId", "artifactId", "version"))


@pytest.mark.parametrize("minor", ["4.0", "4.1", "4.2", "4.3"])
def test_suggested_table_format_packages_equal_the_tested_packages(minor: str) -> None:
    named = {package_of(form, f"{minor}.7") for form in TableFormat} - {None}

    assert named == kept_in_tests().get(minor, set())
