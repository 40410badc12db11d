#!/usr/bin/env bash
# mrcctl doctor over RDMA devices: what it finds is provoked on soft-RoCE and on soft-iWARP, in a virtual machine for each,
# and with both in one (tests/vm/verbs/doctor.sh, doctor_mixed.sh).
#
# usage: tests/vm/doctor.sh      binaries are those of $MRC_BUILD (build)
# Exit: 0 good, 1 not, 77 when no virtual machine, or no soft-iWARP, can be made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

"$here/make" --siw
"$here/verbs.sh" --device rxe doctor doctor_mixed
"$here/verbs.sh" --device siw doctor
