"""Public mode, `ELASTIC_PUBLIC=1`: the app as it is shown to strangers. They look, and change nothing on the machine.

Whatever trains, takes in a file, deletes or measures asks `refuse_in_public` first, here in the services: hiding a button
protects nothing. Pages ask `refusal` and say it where the control would be. Without the mode, `exposure_warning` says what an
address other than this machine's would mean.
"""

import ipaddress
import os
from typing import Literal

from elastic_core.errors import InputError

Act = Literal["training", "upload", "deletion", "measurement"]
VARIABLE = "ELASTIC_PUBLIC"
OFF = ("", "0", "no", "off", "false")
WHAT: dict[Act, str] = {
    "training": "To train, or to stop or delete a training, is off here",
    "upload": "Bringing or keeping data of your own is off here",
    "deletion": "Deleting is off here",
    "measurement": "Measuring on this machine is off here",
}


def is_public() -> bool:
    return os.environ.get(VARIABLE, "").strip().lower() not in OFF


def refusal_reason(act: Act) -> str:
    """One sentence without its full stop; nothing where the act is allowed."""
    if not is_public():
        return ""
    return f"{WHAT[act]}, because this app is open to everyone; on a copy of your own it is on"


def refuse_in_public(act: Act) -> None:
    """Raises InputError with the reason in public mode."""
    if reason := refusal_reason(act):
        raise InputError(f"{reason[:1].lower()}{reason[1:]}")


def exposure_warning(address: str | None) -> str:
    """What strangers could do if the server listens on this address (None: on all of them); nothing where they cannot."""
    if is_public() or (address is not None and is_here(address)):
        return ""
    return (
        f"The app listens on {address or 'every address of this machine'}, not for this machine only. Whoever reaches it can "
        "start and stop trainings, send files, delete runs and data, and keep the processor busy. Start it with "
        f"{VARIABLE}=1 to show it to strangers, or with --server.address 127.0.0.1 to keep it to yourself."
    )


def is_here(address: str) -> bool:
    """Whether it leads to this machine alone."""
    if address == "localhost" or address.startswith("unix:"):
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
