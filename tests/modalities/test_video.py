"""Videos as files: opened with care, frames chosen by a rule, changed at random only where asked."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from seq2see.data.batches import RaggedWriter
from seq2see.data.feature_store import FeatureStore
from seq2see.data.video_files import (
    Clip,
    ClipCache,
    VideoAugmentSettings,
    VideoInput,
    frames_in,
    problem_of,
    read_video,
    select_frames,
)
from seq2see.errors import MissingExtra, UserError
from seq2see.modalities.video import VideoField, changed, jittered, sped_up, turned
from tests.clips import av, counted, written

SMALL = VideoInput(height=32, width=48, colour="grey", longest=4, fit="stretch")


def levels(clip: Clip) -> list[int]:
    """Which frames of `counted` these are."""
    return [round((float(frame.mean()) - 20) / 8) for frame in clip.pixels]


def but(**changes: object) -> VideoInput:
    return SMALL.model_validate(SMALL.model_dump() | changes)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ({}, list(range(20))),
        ({"every": 4}, [0, 4, 8, 12, 16]),
        ({"rate": 5}, list(range(0, 20, 2))),
        ({"rate": 4}, [0, 3, 5, 8, 10, 13, 15, 18]),
        ({"rate": 100}, list(range(20))),
        ({"frames": 4}, [2, 7, 12, 17]),
        ({"frames": 25}, [0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 14, 15, 16, 17, 18, 18, 19]),
        ({"most": 5}, [2, 6, 10, 14, 18]),
        ({"start": 0.5, "end": 1.0}, [5, 6, 7, 8, 9]),
        ({"start": 1.8}, [18, 19]),
    ],
)
def test_frames_are_those_of_the_rule(tmp_path: Path, rule: dict[str, float], wanted: list[int]) -> None:
    path, settings = written(tmp_path / "a.mp4", counted(20)), but(**rule)
    clip = read_video(path, settings)
    assert levels(clip) == wanted
    assert clip.times == pytest.approx([number / 10 for number in wanted])
    assert frames_in(path, settings) == len(wanted)


def test_a_rule_by_time_goes_by_the_times_that_frames_have() -> None:
    slow_then_fast = [0.0, 1.0, 2.0, 2.1, 2.2, 2.3, 3.0]
    assert select_frames(slow_then_fast, VideoInput(rate=1)).tolist() == [0, 1, 2, 6]


@pytest.mark.parametrize("name", ["a.mp4", "a.avi", "a.mkv", "a.mov"])
def test_files_of_all_kinds_are_read(tmp_path: Path, name: str) -> None:
    assert levels(read_video(written(tmp_path / name, counted(6)), SMALL)) == [0, 1, 2, 3, 4, 5]


def corner(frames: int = 3) -> np.ndarray:
    film = np.zeros((frames, 32, 64, 3), dtype=np.uint8)
    film[:, :16, :16, 0] = 255
    return film


def test_a_file_that_lies_on_its_side_is_turned(tmp_path: Path) -> None:
    settings = but(height=64, width=32, colour="rgb")
    clip = read_video(written(tmp_path / "a.mp4", corner(), rotation=90), settings)
    assert clip.pixels.shape == (3, 3, 64, 32)
    assert clip.pixels[0, 0, -12:, :12].mean() > 200, "turned against the clock, the upper left is the lower left"
    assert clip.pixels[0, 0, :12].mean() < 50


def test_colour_region_and_fit(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mp4", corner())
    pixels = read_video(path, but(colour="rgb", height=16, width=32)).pixels[0]
    assert pixels[0, :6, :6].mean() > 200
    assert pixels[2, :6, :6].mean() < 60
    assert read_video(path, but(region=[0, 0, 0.25, 0.5], colour="rgb")).pixels[0, 0].mean() > 200
    assert read_video(path, but(region=[0.5, 0, 1, 1])).pixels.mean() < 30
    middle = read_video(path, but(fit="crop", height=16, width=16, colour="rgb")).pixels[0, 0]
    assert middle.mean() < 30
    padded = read_video(path, but(fit="pad", height=64, width=64)).pixels[0, 0]
    assert padded[:14].mean() > 250
    assert padded[20:40, 40:].mean() < 30


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (20, 32, 48, 3)).astype(np.uint8)
    good = written(tmp_path / "good.avi", noise).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(written(tmp_path / "whole.mp4", counted(20)).read_bytes()[:1000])
    (tmp_path / "cut.avi").write_bytes(good[: len(good) // 2])
    (tmp_path / "text.mp4").write_text("no video", encoding="utf-8")
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "folder.mp4").mkdir()
    with av.open(str(tmp_path / "none.avi"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 32, 32, "yuv420p"
        container.start_encoding()
    with av.open(str(tmp_path / "sound.wav"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
    written(tmp_path / "long.mp4", counted(20), rate=4)
    picture = Image.fromarray(noise[0])
    for name in ("still.png", "still.jpg", "still.webp", "still.bmp"):
        picture.save(tmp_path / name)
    picture.save(tmp_path / "moving.gif", save_all=True, append_images=[Image.fromarray(one) for one in noise[1:4]])
    said = {
        **dict.fromkeys(("still.png", "still.jpg", "still.webp", "still.bmp"), "a picture, not a video"),
        "gone.mp4": "no such file",
        "cut.mp4": "no video stream",
        "cut.avi": "damaged or cut short",
        "text.mp4": "not a video that FFmpeg can read",
        "empty.mp4": "not a video that FFmpeg can read",
        "folder.mp4": "a folder, not a video",
        "none.avi": "a video without frames",
        "sound.wav": "no video stream",
        "long.mp4": "5.0 s long; allowed: at most 4 s",
    }
    for name, reason in said.items():
        assert reason in (problem_of(tmp_path / name, SMALL) or ""), name
    assert problem_of(tmp_path / "good.avi", SMALL) is None
    assert problem_of(tmp_path / "moving.gif", SMALL) is None
    assert "no frame from 3 s on" in (problem_of(tmp_path / "good.avi", but(start=3)) or "")
    assert "allowed: at most 20 on a side" in (problem_of(tmp_path / "good.avi", but(largest=20)) or "")
    with pytest.raises(UserError, match=r"gone\.mp4: no such file"):
        VideoField(SMALL).batch([str(tmp_path / "gone.mp4")])


def trimmed(path: Path, whole: Path, first: int, last: int) -> Path:
    """The packets of a whole file, none coded anew, of which an edit list shows some frames only; its index first."""
    with av.open(str(whole)) as given, av.open(str(path), "w", options={"movflags": "faststart"}) as made:
        old = given.streams.video[0]
        new = made.add_stream_from_template(old)
        for packet in given.demux(old):
            if packet.dts is not None and packet.dts * packet.time_base < last / 10:
                packet.pts, packet.dts = (
                    time - round(first / 10 / packet.time_base) for time in (packet.pts, packet.dts)
                )
                packet.stream = new
                made.mux(packet)
    return path


@pytest.mark.parametrize(("first", "last"), [(0, 24), (7, 24), (14, 20)])
def test_what_an_edit_list_shows_of_a_file_is_all_of_it(tmp_path: Path, first: int, last: int) -> None:
    path = trimmed(tmp_path / "part.mp4", written(tmp_path / "whole.mp4", counted(24)), first, last)
    assert problem_of(path, SMALL) is None
    clip = read_video(path, SMALL)
    assert levels(clip) == list(range(first, last))
    assert clip.times == pytest.approx([number / 10 for number in range(last - first)])
    (tmp_path / "cut.mp4").write_bytes(path.read_bytes()[:-100])
    assert "damaged or cut short" in (problem_of(tmp_path / "cut.mp4", SMALL) or "")


def test_without_the_extra_no_file_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.mp4", counted(3))
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtra, match=r"pip install 'seq2see\[video\]'"):
        VideoField(SMALL).problem(str(path))


def test_a_batch_is_padded_masked_and_named(tmp_path: Path) -> None:
    paths = [str(written(tmp_path / f"{i}.mp4", counted(3 + i))) for i in range(3)]
    column = VideoField(SMALL).batch(paths)
    assert column.pixels is not None
    assert column.pixels.shape == (3, 5, 1, 32, 48)
    assert column.mask.sum(1).tolist() == [3, 4, 5]
    assert not column.pixels[~column.mask].any()
    assert column.names is not None
    assert column.names[0] == ["0.00 s", "0.10 s", "0.20 s"]


def test_a_clip_is_read_backwards(tmp_path: Path) -> None:
    path = str(written(tmp_path / "a.mp4", counted(5)))
    field = VideoField(SMALL)
    column = field.batch([path, turned(path)])
    assert column.pixels is not None
    assert torch.equal(column.pixels[1], column.pixels[0].flip(0))
    assert column.names is not None
    assert column.names[1] == column.names[0][::-1]
    assert field.value(field.ids(turned(path))) == turned(path)
    assert field.problem(turned(path)) is None
    assert turned(turned(path)) == path


def test_what_is_kept_of_a_clip_stands_in_for_it_either_way(tmp_path: Path) -> None:
    path = str(written(tmp_path / "a.mp4", counted(20)))
    field = VideoField(but(frames=4))
    seen = field.batch([path, turned(path)])
    made = np.arange(4, dtype=np.float16).reshape(1, 4, 1, 1, 1)
    field.features = FeatureStore(tmp_path / "kept", made.shape[1:])
    field.features.add([path], made)
    kept = field.batch([path, turned(path)])
    assert kept.pixels is None
    assert kept.maps is not None
    assert kept.maps.flatten(1).tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert kept.mask.all()
    assert (
        kept.names == seen.names == [["0.20 s", "0.70 s", "1.20 s", "1.70 s"], ["1.70 s", "1.20 s", "0.70 s", "0.20 s"]]
    )
    field.files_too = True
    both = field.batch([path])
    assert both.maps is not None
    assert both.pixels is not None


def test_frames_are_left_out_and_doubled_in_their_order() -> None:
    drawn = [jittered(40, 0.3, np.random.default_rng(seed)) for seed in range(50)]
    assert all(one == sorted(one) for one in drawn)
    assert all(one.count(number) <= 2 for one in drawn for number in one)
    assert 36 < np.mean([len(one) for one in drawn]) < 44
    assert len({len(one) for one in drawn}) > 4
    left = np.mean([40 - len(set(one)) for one in drawn])
    assert 4 < left < 8
    assert jittered(1, 0.99, np.random.default_rng(0))


def test_changes_keep_a_clip_a_clip() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 3, 20, 30)).astype(np.uint8)
    clip = Clip(pixels, np.arange(6, dtype=np.float32))

    def made(**how: object) -> list[Clip]:
        settings = VideoAugmentSettings.model_validate(how)
        return [changed(clip, settings, np.random.default_rng(seed)) for seed in range(30)]

    flipped = [bool((one.pixels == pixels[..., ::-1]).all()) for one in made(flip=True)]
    assert 5 < sum(flipped) < 25
    moved = made(shift=0.2)
    assert all(one.pixels.shape == pixels.shape for one in moved)
    assert len({one.pixels.tobytes() for one in moved}) > 20
    inner = [one.pixels[0, 0, 10, 15] for one in moved]
    assert set(inner) <= set(pixels[0, 0, 6:15, 9:22].ravel())
    lit = [float(one.pixels.mean()) for one in made(light=0.4)]
    assert min(lit) < pixels.mean() - 15
    assert max(lit) > pixels.mean() + 15
    assert all((one.pixels == pixels).all() for one in made())


def made_of(clip: Clip, **how: object) -> list[Clip]:
    settings = VideoAugmentSettings.model_validate(how)
    return [changed(clip, settings, np.random.default_rng(seed), most=30) for seed in range(40)]


def test_a_clip_is_played_faster_and_slower_within_the_limit() -> None:
    clip = Clip(np.arange(24, dtype=np.uint8)[:, None, None, None].repeat(4, 2), np.arange(24, dtype=np.float32))
    clips = made_of(clip, speed=0.4)
    numbers = [one.pixels[:, 0, 0, 0].tolist() for one in clips]
    assert all(one == sorted(one) for one in numbers)
    assert all((one.times == one.pixels[:, 0, 0, 0]).all() for one in clips)
    lengths = [len(one) for one in numbers]
    assert min(lengths) in range(17, 21), "24 / 1.4 and a little more"
    assert max(lengths) == 30, "24 / 0.6 are 40, and no more than `most` are read"
    assert all(max(np.diff(one)) <= 2 for one in numbers), "what is left out is spread evenly"
    assert sped_up(1, 1.5).tolist() == [0]


def test_a_rectangle_is_hidden_in_all_frames() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 3, 20, 30)).astype(np.uint8)
    for one in made_of(Clip(pixels, np.arange(6, dtype=np.float32)), occlude=0.5):
        same = (one.pixels == pixels).all((0, 1))
        rows, columns = (np.flatnonzero(~same.all(axis)) for axis in (1, 0))
        if len(rows):
            assert len(rows) <= 10
            assert len(columns) <= 15
            hidden = one.pixels[:, :, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            assert (hidden == round(pixels.mean())).all()
    areas = {int((one.pixels != pixels).sum()) for one in made_of(Clip(pixels, np.zeros(6, np.float32)), occlude=0.5)}
    assert len(areas) > 20


def test_stretches_of_frames_are_hidden_at_most_a_quarter_each() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (16, 1, 8, 8)).astype(np.uint8)
    mean, lengths = np.rint(pixels.mean(0)), []
    for one in made_of(Clip(pixels, np.arange(16, dtype=np.float32)), time_masks=1, time_width=9):
        hidden = np.flatnonzero((one.pixels != pixels).any((1, 2, 3)))
        assert (one.pixels[hidden] == mean).all()
        assert (np.diff(hidden) == 1).all()
        lengths.append(len(hidden))
    assert set(lengths) == {0, 1, 2, 3, 4}


def test_changes_are_drawn_by_the_run_and_only_where_it_learns(tmp_path: Path) -> None:
    augment = {"shift": 0.2, "light": 0.3, "jitter": 0.2, "speed": 0.2, "occlude": 0.3, "time_masks": 1}
    field = VideoField(but(augment=augment))
    paths = [str(written(tmp_path / f"{i}.mp4", counted(9))) for i in range(2)]
    with RaggedWriter(None) as writer:
        for path in paths:
            writer.append(field.ids(path))
        store = writer.finish()
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(field.pad(store, [0, 1]).pixels)
    assert drawn[0] is not None
    assert drawn[2] is not None
    assert torch.equal(drawn[0], drawn[1])
    assert drawn[0].shape != drawn[2].shape or not torch.equal(drawn[0], drawn[2])
    first, second = field.batch(paths).pixels, field.batch(paths).pixels
    assert first is not None
    assert torch.equal(first, second)


def test_clips_are_kept_while_there_is_room_and_read_anew_when_they_change(tmp_path: Path) -> None:
    path, reads = tmp_path / "a", list[str]()

    def read(name: str) -> Clip:
        reads.append(name)
        return Clip(np.zeros((1, 1, 10, 10), np.uint8), np.zeros(1, np.float32))

    path.write_bytes(b"1")
    kept = ClipCache(most=250)
    for name in ("a", "a", "b", "c", "a"):
        kept.get(str(path), name, lambda name=name: read(name))
    assert reads == ["a", "b", "c", "a"], "two of 104 bytes each fit"
    path.write_bytes(b"12")
    kept.get(str(path), "a", lambda: read("changed"))
    assert reads[-1] == "changed"
    assert kept.bytes <= 250
