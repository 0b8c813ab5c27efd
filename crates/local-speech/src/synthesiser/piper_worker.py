# Speaks the lines of standard input with Piper, until its end. On standard output follow frames: a letter, a length, bytes.
# R: the sample rate, once. A: audio. E: the line is spoken. X: it could not be.
import json
import os
import struct
import sys

packages, model, threads = sys.argv[1:4]
sys.path.insert(0, packages)
frames = os.fdopen(os.dup(1), "wb")
# What a library prints must not get between the frames.
os.dup2(2, 1)

import onnxruntime
from piper import PiperVoice
from piper.config import PiperConfig


def send(letter, body=b""):
    frames.write(letter + struct.pack("<I", len(body)) + body)
    frames.flush()


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])
with open(model + ".json", encoding="utf-8") as file:
    config = PiperConfig.from_dict(json.load(file))
voice = PiperVoice(session=session, config=config)
send(b"R", struct.pack("<I", config.sample_rate))
for line in sys.stdin.buffer:
    try:
        for chunk in voice.synthesize(line.decode("utf-8").strip()):
            send(b"A", chunk.audio_int16_bytes)
        send(b"E")
    except Exception as error:
        # Its message may quote the text.
        send(b"X", type(error).__name__.encode()[:100])
