//! The syntax of `ttg.warp_specialize`: a default region and numbered partitions with their
//! arguments and warp counts. The operation that holds the partitions is not written.

pub mod canonicalize;

use super::{WarpSpecializeOp, WarpSpecializePartitionsOp};
use crate::tables::make;
use llopt_mlir::asm::{OpParser, OpPrinter, Parsed, RegionStyle, Token};
use melior::ir::{
    Block, BlockLike, OperationRef, Region, RegionLike, ValueLike, operation::OperationLike,
};

/// `(%a, …) attributes {…} default {…} partition0(%x: type, …) num_warps(4) {…} … : (…) -> …`
///
/// # Errors
/// When the text does not match.
pub fn parse(parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    let location = parser.location();
    let operands = parser.delimited_operand_list(Token::LParen, Token::RParen)?;
    parser.attr_dict_with_keyword()?;
    parser.keyword("default")?;
    let default_region = parser.region(&[])?;
    parser.add_region(default_region);

    let mut partitions = Vec::new();
    let mut warps = Vec::new();
    let partitions_location = parser.location();
    let partitions_location = parser.encode(partitions_location);
    while parser.optional_keyword(&format!("partition{}", partitions.len())) {
        parser.token(Token::LParen)?;
        let mut arguments = Vec::new();
        if let Some(first) = parser.optional_argument(true, false)? {
            arguments.push(first);
            while parser.optional_token(Token::Comma) {
                arguments.push(parser.argument(true, false)?);
            }
        }
        parser.token(Token::RParen)?;
        parser.keyword("num_warps")?;
        parser.token(Token::LParen)?;
        warps.push(parser.integer_as::<i32>()?);
        parser.token(Token::RParen)?;
        partitions.push(parser.isolated_region(&arguments)?);
    }
    parser.token(Token::Colon)?;
    let (inputs, results) = parser.functional_type()?;
    parser.resolve_operands(&operands, &inputs, location)?;
    parser.add_types(&results);
    let warps = make::i32_array(parser.context(), &warps);
    parser.add_attribute("partitionNumWarps", warps);

    let holder = Block::new(&[]);
    holder.append_operation(WarpSpecializePartitionsOp::build(
        partitions_location,
        partitions,
    ));
    let region = Region::new();
    region.append_block(holder);
    parser.add_region(region);
    Ok(())
}

/// The counterpart of [`parse`].
pub fn print<'c>(operation: OperationRef<'c, '_>, printer: &mut OpPrinter<'c, '_>) {
    let operands: Vec<_> = operation.operands().collect();
    printer.text("(");
    printer.operands(operands.iter().copied());
    printer.text(")");
    printer.attr_dict_with_keyword(operation, &["partitionNumWarps"]);
    printer.newline();
    let style = RegionStyle {
        entry_arguments: false,
        ..RegionStyle::default()
    };
    printer.text("default ");
    if let Ok(region) = operation.region(0) {
        printer.region(region, style);
    }
    if let Some(operation) = WarpSpecializeOp::of(operation) {
        for (index, (region, warps)) in operation
            .partition_regions()
            .into_iter()
            .zip(operation.partition_num_warps())
            .enumerate()
        {
            printer.newline();
            printer.text(&format!("partition{index}("));
            if let Some(block) = region.first_block() {
                for argument in 0..block.argument_count() {
                    if argument > 0 {
                        printer.text(", ");
                    }
                    if let Ok(argument) = block.argument(argument) {
                        printer.region_argument(argument, None, false);
                    }
                }
            }
            printer.text(&format!(") num_warps({warps}) "));
            printer.region(region, style);
        }
    }
    let inputs: Vec<_> = operands.iter().map(ValueLike::r#type).collect();
    let results: Vec<_> = operation.results().map(|value| value.r#type()).collect();
    printer.text(" : ");
    printer.functional_type(&inputs, &results);
}

impl<'c, 'a> WarpSpecializeOp<'c, 'a> {
    /// The operation that holds the partitions, `None` when the second region is malformed.
    pub fn partitions(self) -> Option<WarpSpecializePartitionsOp<'c, 'a>> {
        let block = self.operation().region(1).ok()?.first_block()?;
        WarpSpecializePartitionsOp::of(block.first_operation()?)
    }

    /// The partitions, empty when the second region is malformed.
    pub fn partition_regions(self) -> Vec<melior::ir::RegionRef<'c, 'a>> {
        self.partitions()
            .map(WarpSpecializePartitionsOp::partition_regions)
            .unwrap_or_default()
    }
}
