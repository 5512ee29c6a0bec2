-- SPDX-License-Identifier: Apache-2.0
-- All processes, 19 samples per second and CPU, a profile per minute in a directory.
sink.pprof { dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee" }
