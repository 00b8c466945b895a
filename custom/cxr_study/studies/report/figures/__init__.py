"""The figures of a study's report, as SVG elements; each fits half a page unless it says so."""
