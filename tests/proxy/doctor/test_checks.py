"""Each check of the doctor is found where it is declared."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from sluicegate.proxy import doctor
from sluicegate.proxy.doctor.checks import ClusterCheck, MachineCheck, cluster_checks, machine_checks

# Other checks use the results of these, so sluicegate.proxy.doctor.examination determines their order.
IN_BETWEEN = {"advertised", "brokers", "certificate_names", "names", "ports", "running_proxy"}
NO_CHECKS = {"check_result", "checks", "examination", "report", "shared_topics"}
MODULES = sorted({module.name for module in iter_modules(doctor.__path__)} - IN_BETWEEN - NO_CHECKS)


@pytest.mark.parametrize("name", MODULES)
def test_every_doctor_module_registers_a_check(name: str) -> None:
    check = getattr(import_module(f"{doctor.__name__}.{name}"), "CHECK", None)

    assert isinstance(check, MachineCheck | ClusterCheck), (
        f"proxy/doctor/{name}.py: the check is never run; declare CHECK = MachineCheck(PLACE, check), or a ClusterCheck"
    )
    assert check in [*machine_checks(), *cluster_checks()]


def test_doctor_checks_have_unique_ordered_places() -> None:
    for checks in (machine_checks(), cluster_checks()):
        places = [check.place for check in checks]
        named = [f"{check.place} {check.run.__module__.rpartition('.')[2]}" for check in checks]
        assert places == sorted(set(places)), f"two checks have the same place: change one number: {named}"
