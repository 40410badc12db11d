#!/usr/bin/env bash
# As failures_200, with two rails: whenever one fails, one is left.
CASE_RAILS=2 CASE_FAILURES=${CASE_FAILURES:-60} exec "$(dirname "$0")/failures_200.sh"
