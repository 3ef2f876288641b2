// SPDX-License-Identifier: Apache-2.0
// Numbers out of a page of metrics in Prometheus' text format.
#pragma once

// The series of a family whose labels hold `label` as text ("" = all), added up; 0 if there are none.
double metrics_sum(const char *text, const char *family, const char *label);
