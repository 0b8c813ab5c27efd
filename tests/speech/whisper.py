"""Prints what Whisper understands of a WAV file: `whisper.py MODEL FILE [--words]`. A recogniser that is not ours, to judge
voices by. With `--words`, each word has a line of its own after the seconds in which it begins and ends."""
import sys

from faster_whisper import WhisperModel

is_by_word = "--words" in sys.argv
model = WhisperModel(sys.argv[1], device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)
segments, _ = model.transcribe(sys.argv[2], language="en", beam_size=1, temperature=0, word_timestamps=is_by_word)
if is_by_word:
    for segment in segments:
        for word in segment.words:
            print(f"{word.start:.2f} {word.end:.2f} {word.word.strip()}")
else:
    print(" ".join(segment.text.strip() for segment in segments))
