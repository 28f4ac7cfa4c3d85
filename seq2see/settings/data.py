"""How tables are read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seq2see.settings.base import Count, Settings, Share


class DataSettings(Settings):
    """How tables are read."""

    dev_share: Share = Field(0.05, description="share of the rows set aside where no --dev is given")
    dev_most: Count = Field(2000, description="... but at most so many")
    delimiter: Literal["comma", "semicolon", "tab", "pipe", ",", ";", "\t", "|"] | None = Field(
        None, description="between the fields of .csv and .tsv; not given: detected for .csv, tab for .tsv"
    )
    quoting: bool | None = Field(None, description="CSV quotes; not given: on for .csv, off for .tsv")
    encoding: str = Field("utf-8", description="of text files")
    on_error: Literal["stop", "skip"] = Field(
        "stop",
        description="what a row that cannot be read does (one with an empty input or output is left out, and said)",
    )
    stream: bool = Field(False, description="language models: one contiguous text instead of rows")
