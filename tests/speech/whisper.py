"""Prints what Whisper understands of a WAV file: `whisper.py MODEL FILE`. A recogniser that is not ours, to judge voices by."""
import sys

from faster_whisper import WhisperModel

model = WhisperModel(sys.argv[1], device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)
segments, _ = model.transcribe(sys.argv[2], language="en", beam_size=1)
print(" ".join(segment.text.strip() for segment in segments))
