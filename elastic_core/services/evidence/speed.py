"""When is reading a history with ELASTIC faster than with SASRec? From the shipped rows, chosen and timed as the Speed screen
does."""

from pathlib import Path

import pandas as pd

from elastic_core.results.claims import Answer, Finding, Verdict
from elastic_core.services.speed import curves

PEERS = {"sasrec-fused": "processor", "sasrec-eager": "SASRec that stores N × N"}


def speed_verdict(checkpoints: Path) -> Verdict:
    note, findings = "", list[Finding]()
    for peer, where in PEERS.items():
        table, column = curves.usual_shape(curves.shipped_rows(checkpoints))
        ratio = curves.speed_ratio(table, "elastic", peer, column) if len(table) else pd.Series(dtype=float)
        if ratio.empty:
            continue
        answer: Answer = "yes" if (ratio > 1).all() else "no" if (ratio <= 1).all() else "it depends"
        note = f"Time {curves.TIMES[column]}; {curves.machine_text(table)}"
        sentence = f"On a processor: {curves.speed_sentence(table, 'elastic', peer, column)}"
        findings.append(Finding(answer, sentence, where=where, n=len(ratio)))
    if findings and (card := curves.graphics_card(checkpoints)):
        sentence = (
            f"On a graphics card ({card['device']}, {card['length']} events) a training step takes ELASTIC {card['step']} "
            "times as long as SASRec."
        )
        answer = "no" if float(card["step"]) > 1 else "yes"
        findings.append(Finding(answer, sentence, where="graphics card", n=1))
    command = "" if findings else "nice elastic bench --directions forward --threads 1"
    absent = "" if findings else "No measurement of speed came with this copy."
    change = "Another machine, batch, d or k."
    return Verdict("speed", "ELASTIC is faster than SASRec.", tuple(findings), change, "speed", command, absent, note)
