"""Files decoded by processes of their own: the same results, and no file that can stop the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from PIL import Image

from seq2see.data.decoder_pool import COMMAND as REAL_COMMAND
from seq2see.data.decoder_pool import START_SECONDS, DecoderPool, Unavailable
from seq2see.data.image_files import ImageInput, read_image
from seq2see.data.media_files import Job, MediaError
from seq2see.data.sound_files import SoundInput, read_sound
from seq2see.data.video_files import VideoInput, read_video
from seq2see.errors import UserError
from tests.clips import written as filmed
from tests.misbehaving_decoder import COMMAND, LIMITS, pool
from tests.own_kind import DigitsInput

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

IMAGE = ImageInput(height=16, width=16)


@pytest.fixture(scope="module")
def patient() -> Iterator[DecoderPool]:
    made = pool(processes=1)
    yield made
    made.close()


def saying(folder: Path, content: str) -> Job:
    path = folder / f"{content}.png"
    path.write_text(content, encoding="utf-8")
    return Job(str(path), IMAGE)


def good(folder: Path) -> Job:
    Image.new("RGB", (20, 20), "red").save(folder / "good.png")
    return Job(str(folder / "good.png"), IMAGE)


def pid_of(given: DecoderPool, folder: Path) -> int:
    return int(given.submit([saying(folder, "who")])[0].result()[0][0])


def gone(pid: int) -> bool:
    """Whether a process has ended, soon: a generous bound that only one that stays would miss."""
    until = monotonic() + 60
    while monotonic() < until:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        sleep(0.05)
    return False


def test_results_are_those_of_this_process_to_the_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    pixels = random.integers(0, 255, (90, 70, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=_turned())
    Image.fromarray(random.integers(0, 65535, (40, 50)).astype(np.uint16)).save(tmp_path / "b.png")
    soundfile.write(tmp_path / "a.flac", random.uniform(-1, 1, (5000, 3)), 11_025)
    filmed(tmp_path / "a.mp4", random.integers(0, 255, (9, 32, 48, 3)).astype(np.uint8))
    image, line = ImageInput(height=30, width=40), ImageInput(height=30, width=0, colour="grey")
    sound, video = SoundInput(), VideoInput(height=20, width=30, rate=5)
    a, b = str(tmp_path / "a.jpg"), str(tmp_path / "b.png")
    made = pool(processes=1, command=REAL_COMMAND)
    try:
        jobs = [Job(a, image), Job(a, line), Job(b, line)]
        jobs += [Job(str(tmp_path / "a.flac"), sound), Job(str(tmp_path / "a.mp4"), video)]
        *pictures, (samples, rate), (frames, times) = [one.result() for one in made.submit(jobs)]
    finally:
        made.close()
    for (found,), job in zip(pictures, jobs, strict=False):
        assert isinstance(job.settings, ImageInput)
        wanted = read_image(job.path, job.settings)
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)
    wanted_samples, wanted_rate = read_sound(tmp_path / "a.flac", sound)
    assert (samples.dtype, int(rate)) == (np.float32, wanted_rate)
    assert np.array_equal(samples, wanted_samples)
    clip = read_video(tmp_path / "a.mp4", video)
    assert (frames.dtype, times.dtype) == (clip.pixels.dtype, clip.times.dtype)
    assert np.array_equal(frames, clip.pixels)
    assert np.array_equal(times, clip.times)


def test_a_kind_of_ones_own_is_decoded_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1234", "ascii")
    (tmp_path / "b.txt").write_text("12x4", "ascii")
    digits = DigitsInput(factor=3)
    made = pool(processes=1, command=REAL_COMMAND)
    try:
        made.submit([good(tmp_path)])[0].result(60)  # the first process knows only images
        jobs = [Job(str(tmp_path / name), digits) for name in ("a.txt", "b.txt", "a.txt")]
        first, damaged, second = made.submit(jobs)
        assert first.result(60)[0].tolist() == [3, 6, 9, 12]
        with pytest.raises(MediaError, match="not a row of digits"):
            damaged.result(60)
        assert int(second.result(60)[1]) == int(first.result()[1]), "torch in a process is not growth"
        assert int(first.result()[1]) != os.getpid()
        assert made.submit([good(tmp_path)])[0].result(60)[0].shape == (3, 16, 16)
    finally:
        made.close()


def test_a_kind_that_no_process_can_import_is_refused() -> None:
    class Hidden(DigitsInput):
        """Only this function knows it."""

    made = pool(processes=1)
    with pytest.raises(UserError, match="Hidden"):
        made.add_kind(Hidden)
    made.close()


def test_a_kind_that_cannot_be_imported_there_is_a_problem_of_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.data.decoder_pool.import_name", lambda kind: "no.such.module:Kind")
    made = pool(processes=1)
    try:
        with pytest.raises(Unavailable, match=r"no\.such|No module named 'no'"):
            made.submit([good(tmp_path)])[0].result(60)
        assert made.failure is not None
    finally:
        made.close()


def _turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_decoded(tmp_path: Path) -> None:
    made = pool(processes=1, seconds=1.0)
    try:
        hanging, after = made.submit([saying(tmp_path, "hang"), good(tmp_path)])
        with pytest.raises(MediaError, match="longer than 1 s"):
            hanging.result(60)
        assert after.result(60)[0].shape == (3, 16, 16)
    finally:
        made.close()


@pytest.mark.parametrize("content", ["crash", "exit", "bug", "grow", "large", "many", "strange"])
def test_whatever_a_file_does_to_its_decoder_is_that_files_problem(
    patient: DecoderPool, tmp_path: Path, content: str
) -> None:
    bad, after = patient.submit([saying(tmp_path, content), good(tmp_path)])
    with pytest.raises(MediaError):
        bad.result(60)
    assert after.result(60)[0].shape == (3, 16, 16)


def test_a_picture_that_takes_more_memory_than_allowed_is_refused(tmp_path: Path) -> None:
    Image.new("1", (8000, 8000)).save(tmp_path / "large.png")
    large = Job(str(tmp_path / "large.png"), IMAGE)
    assert read_image(large.path, IMAGE).shape == (3, 16, 16), "which is not too large by itself"
    made = pool(processes=1, memory=200_000_000, command=REAL_COMMAND)
    try:
        refused, after = made.submit([large, good(tmp_path)])
        with pytest.raises(MediaError, match="memory"):
            refused.result(60)
        assert after.result(60)[0].shape == (3, 16, 16)
    finally:
        made.close()


def test_what_a_library_prints_does_not_get_into_the_results(patient: DecoderPool, tmp_path: Path) -> None:
    assert patient.submit([saying(tmp_path, "print")])[0].result(60)[0].tolist() == [0]
    assert patient.submit([good(tmp_path)])[0].result(60)[0].shape == (3, 16, 16)


def test_a_process_knows_neither_torch_nor_the_servers_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQ2SEE_TOKEN", "a-secret-of-the-server")
    made = pool(processes=1)
    try:
        assert made.submit([saying(tmp_path, "who")])[0].result(60)[0][1:].tolist() == [0, 0]
    finally:
        made.close()


def test_a_process_that_has_grown_is_replaced(patient: DecoderPool, tmp_path: Path) -> None:
    before = pid_of(patient, tmp_path)
    assert pid_of(patient, tmp_path) == before
    assert int(patient.submit([saying(tmp_path, "swell")])[0].result(60)[0][0]) == before
    assert pid_of(patient, tmp_path) != before
    assert gone(before)


def test_a_process_that_dies_while_it_is_idle_is_replaced(patient: DecoderPool, tmp_path: Path) -> None:
    pid = pid_of(patient, tmp_path)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert pid_of(patient, tmp_path) != pid


def test_what_nobody_waits_for_leaves_the_queue_or_is_broken_off(tmp_path: Path) -> None:
    made = pool(processes=1)
    try:
        hanging, *waiting = made.submit([saying(tmp_path, "hang"), good(tmp_path), good(tmp_path)])
        until = monotonic() + 60
        while not made.running and monotonic() < until:
            sleep(0.01)
        assert (made.running, made.waiting) == (1, 2)
        made.cancel(waiting)
        assert made.waiting == 0
        with pytest.raises(CancelledError):
            waiting[0].result(60)
        made.cancel([hanging])
        with pytest.raises(MediaError):
            hanging.result(60)
        assert made.submit([good(tmp_path)])[0].result(60)[0].shape == (3, 16, 16)
    finally:
        made.close()


def test_a_queue_has_an_end(tmp_path: Path) -> None:
    made = pool(processes=1, queue_size=2)
    try:
        hanging = saying(tmp_path, "hang")
        made.submit([hanging])
        until = monotonic() + 60
        while not made.running and monotonic() < until:
            sleep(0.01)
        made.submit([hanging, hanging])
        with pytest.raises(Unavailable, match="too many files wait"):
            made.submit([hanging])
        assert made.waiting == 2
    finally:
        made.close()
    with pytest.raises(Unavailable):
        made.submit([hanging])


def test_processes_that_cannot_be_started_are_said(tmp_path: Path) -> None:
    for command in ([sys.executable, "-c", "raise SystemExit(3)"], [str(tmp_path / "nowhere")]):
        made = pool(command=command)
        try:
            with pytest.raises(Unavailable, match="no decoder process can be started"):
                made.submit([good(tmp_path)])[0].result(60)
            assert made.failure is not None
        finally:
            made.close()


def test_the_limit_of_a_result_holds_for_all_of_its_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"halves")
    made = pool(processes=1, result_bytes=1_000_000)
    try:
        with pytest.raises(MediaError, match="more than 1 MB"):
            made.submit([Job(str(tmp_path / "a.mp4"), VideoInput())])[0].result(60)
    finally:
        made.close()


def exhausted(*_: object, **__: object) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("started", [False, True])
def test_a_system_without_threads_is_reported_and_the_next_file_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    """Be it that a process is to be started, or is there already."""
    made = pool(processes=1)
    try:
        if started:
            made.submit([good(tmp_path)])[0].result(60)
        with monkeypatch.context() as broken:
            broken.setattr("threading.Timer.start", exhausted)
            with pytest.raises(Unavailable):
                made.submit([good(tmp_path)])[0].result(60)
        assert made.failure is not None
        assert made.running == 0
        assert made.submit([good(tmp_path)])[0].result(60)[0].shape == (3, 16, 16)
        assert made.failure is None
    finally:
        made.close()


def test_a_pool_whose_threads_cannot_start_takes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pool(processes=1)
    try:
        with monkeypatch.context() as broken:
            broken.setattr("threading.Thread.start", exhausted)
            with pytest.raises(Unavailable):
                made.submit([good(tmp_path)])
        assert made.failure is not None
        assert made.waiting == 0
        assert made.submit([good(tmp_path)])[0].result(60)[0].shape == (3, 16, 16)
    finally:
        made.close()


def test_the_end_does_not_wait_for_a_process_that_is_being_started(tmp_path: Path) -> None:
    made = pool(processes=1, command=[sys.executable, "-c", "import time; time.sleep(600)"])
    (decoding,) = made.submit([good(tmp_path)])
    until = monotonic() + 60
    while not made.running and monotonic() < until:
        sleep(0.01)
    closing = threading.Thread(target=made.close, daemon=True)
    closing.start()
    closing.join(START_SECONDS / 2)
    assert not closing.is_alive()
    with pytest.raises(Unavailable):
        decoding.result(60)


def test_a_library_that_is_missing_is_no_files_fault(tmp_path: Path) -> None:
    script = "import sys; sys.modules['soundfile'] = None; from seq2see.data.decoder_process import main; main()"
    made = pool(processes=1, command=[sys.executable, "-P", "-c", script])
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    try:
        with pytest.raises(UserError, match=r"pip install 'seq2see\[sound\]'") as stopped:
            made.submit([Job(str(tmp_path / "a.wav"), SoundInput())])[0].result(60)
        assert not isinstance(stopped.value, MediaError)
    finally:
        made.close()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    made = pool(processes=1)
    pid = pid_of(made, tmp_path)
    made.close()
    assert gone(pid)


@pytest.mark.parametrize("content", ["hang", "spin", "idle"])
@pytest.mark.skipif(sys.platform != "linux", reason="ends with its parent only there")
def test_nothing_is_left_behind_by_a_server_that_is_killed(tmp_path: Path, content: str) -> None:
    who, busy = saying(tmp_path, "who"), saying(tmp_path, content)
    script = f"""
import sys, time
from seq2see.data.decoder_pool import DecoderPool
from seq2see.data.media_files import Job
from seq2see.data.image_files import ImageInput
made = DecoderPool(**{LIMITS!r}, command={COMMAND!r})
print(int(made.submit([Job({who.path!r}, ImageInput())])[0].result()[0][0]), flush=True)
if {content!r} != "idle":
    made.submit([Job({busy.path!r}, ImageInput())])
    while not made.running:
        time.sleep(0.01)
print("busy", flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        assert server.stdout.readline() == "busy\n"
        server.kill()
    assert gone(pid)


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_is_killed_while_it_starts_is_started_once_more(tmp_path: Path, times: int) -> None:
    """Its file is not to blame, and its sender need not hear of it; killed again, it is a failure."""
    script = (
        "import os, signal, sys; from pathlib import Path; sys.path.insert(0, '.')\n"
        f"starts = Path({str(tmp_path / 'starts')!r})\n"
        "with starts.open('a') as file: file.write('.')\n"
        f"if len(starts.read_text()) <= {times}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from seq2see.data.decoder_process import main; main()"
    )
    made = pool(processes=1, command=[sys.executable, "-P", "-c", script])
    try:
        [decoding] = made.submit([good(tmp_path)])
        if times == 1:
            assert decoding.result()[0].shape == (3, 16, 16)
            assert made.failure is None
        else:
            with pytest.raises(Unavailable, match=r"killed by signal 9"):
                decoding.result()
    finally:
        made.close()
