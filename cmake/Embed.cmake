file(READ ${SOURCE} text)
file(WRITE ${OUTPUT} "R\"__embed__(${text})__embed__\"\n")
