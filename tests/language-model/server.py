"""Runs llama.cpp's server with a model on a port of this machine, until it is killed: server.py MODEL PORT CONTEXT.

It does not stop for SIGTERM, so whoever starts it kills it.
"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostname = "127.0.0.1"
params.port = int(sys.argv[2])
params.n_ctx = int(sys.argv[3])
params.n_parallel = 1
# Enough for a call: this version breaks off a stream whose last call is cut.
params.n_predict = 160
params.sampling.temp = 0
# With more threads than idle cores they wait for each other.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.use_jinja = True
params.warmup = False
server = xllamacpp.Server(params)
threading.Event().wait()
