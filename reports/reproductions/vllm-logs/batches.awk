# Rows of points.csv, of one deployment: a trace in which the batch of point i arrives at 10,000 i seconds, all of it at once.
# Of a step with a known context the prompts are shorter than it, so that the batch reaches it while all of it decodes.
BEGIN { print "arrival_s,prompt_tokens,output_tokens" }
{
    prompt = $14
    output = $15
    if ($12 == "step") {
        output = 40 + int($13 * $16 / 2048)
        prompt = $16 - int(output / 2)
        if (prompt < 1) prompt = 1
    }
    for (i = 0; i < $13; i++) print NR * 10000 "," prompt "," output
}
