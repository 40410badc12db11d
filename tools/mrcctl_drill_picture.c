/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drill_picture.h"

#include <errno.h>
#include <stdlib.h>

#include "mrcctl_unit.h"

#define WIDTH       1100.0
#define HEIGHT      520.0
#define LEFT        90.0
#define RIGHT       140.0
#define TOP         90.0
#define BOTTOM      60.0
#define COLUMNS     160U /* each is drawn as a step */
#define LABEL_PX    15.0
#define LABEL_X_MAX (WIDTH * 0.6)
#define LABELS      4U /* lines of them above the drawing */
#define S_NS        1e9
#define TICKS_MIN   4.0

static const char *const mrcctl_drill_colours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
						   "#56b4e9", "#d55e00", "#f0e442", "#999999"};

struct picture {
	const struct mrcctl_drill_record *record;
	uint64_t from_ns, to_ns;
	double top;    /* bytes a second at the upper edge */
	double *edges; /* (rail_count + 1) for each column: what stands below each rail, and the sum */
};

static double picture_x(const struct picture *p, uint64_t t_ns)
{
	double part = t_ns <= p->from_ns
			      ? 0
			      : (double)(t_ns - p->from_ns) / (double)(p->to_ns - p->from_ns);

	return LEFT + (part > 1 ? 1 : part) * (WIDTH - LEFT - RIGHT);
}

static double picture_y(const struct picture *p, double rate)
{
	return HEIGHT - BOTTOM - rate / p->top * (HEIGHT - BOTTOM - TOP);
}

static uint64_t picture_t(const struct picture *p, uint32_t column)
{
	return p->from_ns + (p->to_ns - p->from_ns) * column / COLUMNS;
}

/* 1, 2 or 5 times a power of ten, so that at least TICKS_MIN of them go into it. */
static double picture_step(double whole)
{
	static const double steps[] = {5, 2, 1};
	double power = 1e-3;

	while (power * 10 * TICKS_MIN <= whole)
		power *= 10;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (power * steps[i] * TICKS_MIN <= whole)
			return power * steps[i];
	}
	return power;
}

/* Names come from a configuration: nothing in them shall be markup. */
static void picture_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if ((unsigned char)*text >= 0x20)
			fputc(*text, out);
	}
}

/* Between the samples around the ends of a column the bytes are spread evenly. */
static double picture_bytes_at(const struct picture *p, uint32_t rail, uint64_t t_ns)
{
	const struct mrcctl_drill_record *record = p->record;
	size_t low = 0, high = record->sample_count - 1;
	const struct mrcctl_drill_sample *a, *b;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (record->samples[middle].t_ns <= t_ns)
			low = middle;
		else
			high = middle;
	}
	a = &record->samples[low];
	b = &record->samples[high];
	if (t_ns >= b->t_ns || b->t_ns == a->t_ns)
		return (double)b->rails[rail].bytes;
	return (double)a->rails[rail].bytes +
	       ((double)b->rails[rail].bytes - (double)a->rails[rail].bytes) *
		       (double)(t_ns - a->t_ns) / (double)(b->t_ns - a->t_ns);
}

static void picture_fill(struct picture *p)
{
	uint32_t rails = p->record->rail_count;

	for (uint32_t c = 0; c < COLUMNS; c++) {
		uint64_t a_ns = picture_t(p, c), b_ns = picture_t(p, c + 1);
		double *edge = &p->edges[(size_t)c * (rails + 1)];

		edge[0] = 0;
		for (uint32_t r = 0; r < rails; r++) {
			double rate =
				(picture_bytes_at(p, r, b_ns) - picture_bytes_at(p, r, a_ns)) *
				S_NS / (double)(b_ns - a_ns);

			edge[r + 1] = edge[r] + (rate > 0 ? rate : 0);
		}
		p->top = edge[rails] * 1.05 > p->top ? edge[rails] * 1.05 : p->top;
	}
}

static void picture_area(const struct picture *p, uint32_t rail, FILE *out)
{
	uint32_t rails = p->record->rail_count;

	fprintf(out, "<path fill=\"%s\" fill-opacity=\"0.85\" d=\"",
		mrcctl_drill_colours[rail % (sizeof(mrcctl_drill_colours) / sizeof(char *))]);
	for (uint32_t i = 0; i < 2 * COLUMNS; i++) {
		bool is_back = i >= COLUMNS;
		uint32_t c = is_back ? 2 * COLUMNS - 1 - i : i;
		double y = picture_y(p, p->edges[(size_t)c * (rails + 1) + rail + !is_back]);
		double x1 = picture_x(p, picture_t(p, c + is_back));
		double x2 = picture_x(p, picture_t(p, c + !is_back));

		fprintf(out, "%c%.1f %.1fL%.1f %.1f", i == 0 ? 'M' : 'L', x1, y, x2, y);
	}
	fprintf(out, "Z\"/>\n");
}

static void picture_axes(const struct picture *p, FILE *out)
{
	double span_s = (double)(p->to_ns - p->from_ns) / S_NS, step = picture_step(span_s);
	char text[MRCCTL_UNIT_BYTES];

	for (uint32_t i = 0; i * step <= span_s; i++) {
		double t = i * step, x = picture_x(p, p->from_ns + (uint64_t)(t * S_NS));

		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n", x,
			HEIGHT - BOTTOM + 20, t);
		fprintf(out, "<path stroke=\"#666\" d=\"M%.1f %.1fv5\"/>\n", x, HEIGHT - BOTTOM);
	}
	step = picture_step(p->top * 8);
	for (uint32_t i = 0; i * step <= p->top * 8; i++) {
		double rate = i * step, y = picture_y(p, rate / 8);

		fprintf(out, "<path stroke=\"#ddd\" d=\"M%.1f %.1fH%.1f\"/>\n", LEFT, y,
			WIDTH - RIGHT);
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT - 8, y + 4, mrcctl_unit_bits_per_s((uint64_t)rate, text));
	}
	fprintf(out,
		"<path stroke=\"#666\" fill=\"none\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n"
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">seconds</text>\n",
		LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16);
}

static void picture_legend(const struct picture *p, FILE *out)
{
	for (uint32_t r = 0; r < p->record->rail_count; r++) {
		double y = TOP + 20.0 * (p->record->rail_count - r);

		fprintf(out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"12\" fill=\"%s\" "
			"fill-opacity=\"0.85\"/>\n<text x=\"%.1f\" y=\"%.1f\">rail ",
			WIDTH - RIGHT + 16, y - 10,
			mrcctl_drill_colours[r % (sizeof(mrcctl_drill_colours) / sizeof(char *))],
			WIDTH - RIGHT + 36, y);
		picture_text(out, p->record->rails[r]);
		fprintf(out, "</text>\n");
	}
}

/* Beneath what flowed, so that a rail has one colour throughout. */
static void picture_shade(const struct picture *p, const struct mrcctl_drill_result *result,
			  FILE *out)
{
	double x = picture_x(p, result->began_ns);

	fprintf(out,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"fill=\"#f9e4d4\"/>\n",
		x, TOP, picture_x(p, result->ended_ns) - x, HEIGHT - BOTTOM - TOP);
}

static void picture_fault(const struct picture *p, const struct mrcctl_drill_result *result,
			  FILE *out)
{
	double x1 = picture_x(p, result->began_ns), x2 = picture_x(p, result->ended_ns);

	fprintf(out,
		"<path stroke=\"#a33\" stroke-dasharray=\"5 4\" d=\"M%.1f %.1fV%.1fM%.1f "
		"%.1fV%.1f\"/>\n",
		x1, TOP, HEIGHT - BOTTOM, x2, TOP, HEIGHT - BOTTOM);
}

/* What happened when, in the free space above; lines take turns so that neighbours do not overlap. */
static void picture_labels(const struct picture *p, const struct mrcctl_drill_result *results,
			   size_t result_count, FILE *out)
{
	char span[MRCCTL_UNIT_BYTES], stall[MRCCTL_UNIT_BYTES];

	for (size_t i = 0; i < result_count; i++) {
		const struct mrcctl_drill_result *result = &results[i];
		const struct mrcctl_drill_path *path = result->paths;
		double x = picture_x(p, result->began_ns);
		double y = TOP - 8 - LABEL_PX * (double)(i % LABELS);
		/* What begins late would end outside: it ends with its fault. */
		bool is_late = x > LABEL_X_MAX;

		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>",
			is_late ? picture_x(p, result->ended_ns) : x, y,
			is_late ? " text-anchor=\"end\"" : "");
		picture_text(out, result->rail);
		fprintf(out, " %s",
			result->is_watch ? "went" : mrcctl_drill_fault_name(result->fault));
		if (result->path_count > 0)
			fprintf(out, ", %s after %s", path->reason,
				mrcctl_unit_span(result->is_watch ? path->quiet_ns : path->left_ns,
						 span));
		if (result->is_measured && result->during.stall_ns != MRCCTL_DRILL_UNKNOWN)
			fprintf(out, ", longest stall %s",
				mrcctl_unit_span(result->during.stall_ns, stall));
		fprintf(out, "</text>\n");
	}
}

int mrcctl_drill_picture(const struct mrcctl_drill_record *record,
			 const struct mrcctl_drill_result *results, size_t result_count, FILE *out)
{
	struct picture p = {.record = record, .top = 1};

	if (record->sample_count < 2 || record->rail_count == 0)
		return -ENODATA;
	p.from_ns = record->samples[0].t_ns;
	p.to_ns = record->samples[record->sample_count - 1].t_ns;
	if (p.to_ns <= p.from_ns)
		return -ENODATA;
	p.edges = calloc((size_t)COLUMNS * (record->rail_count + 1), sizeof(*p.edges));
	if (p.edges == NULL)
		return -ENOMEM;
	picture_fill(&p);

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\" "
		"fill=\"#333\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"%.1f\" y=\"20\" font-size=\"15\">Payload on each rail, sent and "
		"received, on top of each other</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	for (size_t i = 0; i < result_count; i++)
		picture_shade(&p, &results[i], out);
	picture_axes(&p, out);
	for (uint32_t r = 0; r < record->rail_count; r++)
		picture_area(&p, r, out);
	for (size_t i = 0; i < result_count; i++)
		picture_fault(&p, &results[i], out);
	picture_labels(&p, results, result_count, out);
	picture_legend(&p, out);
	fprintf(out, "</svg>\n");
	free(p.edges);
	return ferror(out) ? -EIO : 0;
}
